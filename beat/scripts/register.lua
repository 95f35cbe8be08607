#!lua
-- Brings definitions from the code into Redis, each by compare-and-set on what the beat saw when it prepared them. An
-- unknown rev is newer and wins; one that was replaced comes back only when no live beat announces a newer one. A tick
-- that is due already is never moved.
--
-- KEYS[1] schedules        set     every id
-- KEYS[2] due              zset    id → due_at in ms
-- KEYS[3] meta             hash    format
-- KEYS[4] events           stream  every change, for whoever reads it
-- KEYS[5] announcements    zset    digest → when it lapses, in ms, of each live registry
-- ARGV[1] schedule_prefix  text    followed by an id: the hash of that schedule
-- ARGV[2] template_prefix  text    followed by an id: the fields of its job, as RQ writes them
-- ARGV[3] announced_prefix text    followed by a digest: id → rev, what that registry declares
-- ARGV[4] runs_prefix      text    followed by an id: its ledger
-- ARGV[5] format           count   the format of the keys that this beat writes
-- ARGV[6] beat             text    who registers
-- ARGV[7] history_limit    count   how many verdicts a ledger keeps
-- ARGV[8] events_limit     count   about how many events are kept
-- ARGV[9…] items, each of
-- ITEM[1]  id          text   the schedule
-- ITEM[2]  rev         text   the digest of its definition
-- ITEM[3]  seen_rev    text   the rev that the beat saw, or nothing
-- ITEM[4]  seen_next   text   the next_run that it saw, or nothing
-- ITEM[5]  seen_state  word   the state that it saw, or nothing
-- ITEM[6]  state       word   the state from now on
-- ITEM[7]  next        time   next_run from now on; nothing when there is none, `keep` when it stays
-- ITEM[8]  next_due    ms     when that is due
-- ITEM[9]  rule        text   all that decides its ticks, as JSON
-- ITEM[10] fields      count  how many of the values that follow are names and values of the hash
-- ITEM[11] template    count  how many after those are names and values of the job; 0 when it is that of the item before
--
-- Replies {now in ms, {code, words}, …}, one for each item
--   NEW       it was not there
--   UPDATED   the definition was replaced; next_run stays
--   MOVED     next_run moved; words: from where
--   OLDER     a live beat announces a newer definition; words: its rev
--   RETRY     the schedule changed while this was prepared: look again
--   BADTYPE   a key is not what it should be
--   BADSTATE  a counter of the schedule is not a number: it waits for a person
--   NEWER     the keys were written by a newer beat: left alone
local schedules, due, meta, events, announcements = unpack(KEYS)
local schedule_prefix, template_prefix, announced_prefix, runs_prefix = unpack(ARGV, 1, 4)
local format, beat, history_limit, events_limit = ARGV[5], ARGV[6], ARGV[7], ARGV[8]

-- include instants
-- include now
-- include sane
-- include quoted
-- include ledger

local first, width = 9, 11
local live, added, placings, removed = {}, {}, {}, {}

local function add(list, ...)
  for _, value in ipairs({...}) do list[#list + 1] = value end
end

local function place_of(rev, revs)
  local place = 0
  for each in string.gmatch(revs, '%S+') do
    place = place + 1
    if each == rev then return place end
  end
end

local function newer_elsewhere(id, rev, revs)
  local mine = place_of(rev, revs)
  for _, digest in ipairs(mine and live or {}) do
    local other = kind_of(announced_prefix .. digest) == 'hash' and redis.call('HGET', announced_prefix .. digest, id)
    local place = other and place_of(other, revs)
    if place and place < mine then return other end
  end
end

local function newest_first(rev, revs)
  local list = {rev}
  for each in string.gmatch(revs, '%S+') do
    if each ~= rev and #list < 10 then list[#list + 1] = each end
  end
  return table.concat(list, ' ')
end

local function record(id, code, rev, rule, was, from, next)  -- the ledger knows which definition was in force when
  local type = code == 'NEW' and 'registered' or string.lower(code)
  local is_rule = was and string.find(was, '^{.*}$') and not string.find(was, '%c') and pcall(cjson.decode, was)
  local line = '{"type":"' .. type .. '","rev":' .. quoted(rev) .. ',"rule":' .. rule .. ',"was":' .. (is_rule and was or 'null')
    .. ',"from":' .. quoted(from) .. ',"next":' .. quoted(next) .. ',"at":"' .. now_text .. '","beat":' .. quoted(beat) .. '}'
  append_other(id, line, schedule_prefix .. id)
  tell(id, type, next, '', beat, line)
end

local job  -- the newest template: the first and the last of its words, and a key that has it
local function write_job(key)
  if job.key and job.key ~= key then return redis.call('COPY', job.key, key, 'REPLACE') end
  redis.call('DEL', key)
  redis.call('HSET', key, unpack(ARGV, job.first, job.last))
  job.key = key
end

local function upsert(at)
  local id, rev, seen_rev, seen_next, seen_state, state, next, next_due, rule, fields, template = unpack(ARGV, at, at + width - 1)
  local key = schedule_prefix .. id
  local kind = kind_of(key)
  if kind ~= 'none' and kind ~= 'hash' then return 'BADTYPE', key .. ' is a ' .. kind end
  local is_there = kind == 'hash'
  kind = kind_of(runs_prefix .. id)
  if kind ~= 'none' and kind ~= 'list' then return 'BADTYPE', runs_prefix .. id .. ' is a ' .. kind .. ', not a list' end
  local h = redis.call('HMGET', key, 'rev', 'next_run', 'state', 'due_at', 'revs', 'run_count', 'skip_count', 'version', 'rule')
  local now_rev, next_run, now_state, due_at, revs, run_count, skip_count, version, was = unpack(h)
  if (now_rev or '') ~= seen_rev or (next_run or '') ~= seen_next or (now_state or '') ~= seen_state then return 'RETRY', '' end
  local wrong = problem(rev, nil, nil, run_count, skip_count)
  if wrong then return 'BADSTATE', wrong end
  local newer = now_rev ~= rev and newer_elsewhere(id, rev, revs or '')
  if newer then return 'OLDER', newer end

  local placed = to_ms(next_run) and to_ms(due_at)
  if placed and to_ms(next_run) <= now and now_state == 'active' and next ~= 'keep' then  -- be it held back until later
    next = 'keep'
    if state == 'finished' then state = 'active' end  -- the tick that is due comes first, then the end
  end
  local code = not now_rev and 'NEW' or (next ~= 'keep' and next ~= (next_run or '')) and 'MOVED' or 'UPDATED'
  if is_there then redis.call('HDEL', key, 'cron', 'every', 'result_ttl', 'failure_ttl', 'overlap', 'jitter', 'max_runs', 'misfire', 'exclude') end
  local written = {'rev', rev, 'rule', rule, 'revs', newest_first(rev, revs or ''), 'state', state, 'updated_at', now_text,
    'version', (tonumber(version or '') or 0) + 1, unpack(ARGV, at + width, at + width + fields - 1)}
  if not now_rev then add(written, 'created_at', now_text, 'run_count', run_count or 0, 'skip_count', skip_count or 0) end
  if next == '' then
    redis.call('HDEL', key, 'next_run', 'due_at')
    placed = nil
  elseif next ~= 'keep' then
    placed = tonumber(next_due)
    add(written, 'next_run', next, 'due_at', due_text(next, placed))
  end
  redis.call('HSET', key, unpack(written))
  write_job(template_prefix .. id)
  if state == 'active' and placed then add(placings, placed, id) else add(removed, id) end
  add(added, id)
  record(id, code, rev, rule, was, next_run or '', next == 'keep' and (next_run or '') or next)
  return code, code == 'MOVED' and next_run or ''
end

local function refusal()
  local kinds = {[schedules] = 'set', [due] = 'zset', [meta] = 'hash', [events] = 'stream', [announcements] = 'zset'}
  for key, wanted in pairs(kinds) do
    local kind = kind_of(key)
    if kind ~= 'none' and kind ~= wanted then return {'BADTYPE', key .. ' is a ' .. kind .. ', not a ' .. wanted} end
  end
  local written = tonumber(redis.call('HGET', meta, 'format') or format)
  if written ~= tonumber(format) then return {'NEWER', tostring(written)} end
end

local refused = refusal()
if not refused then
  redis.call('HSETNX', meta, 'format', format)
  live = redis.call('ZRANGEBYSCORE', announcements, now, '+inf')
end
local replies, at = {now}, first
while at <= #ARGV do
  local job_at = at + width + ARGV[at + 9]
  local next_at = job_at + ARGV[at + 10]
  if next_at > job_at then job = {first = job_at, last = next_at - 1} end
  replies[#replies + 1] = refused or {upsert(at)}
  at = next_at
end
if #added > 0 then redis.call('SADD', schedules, unpack(added)) end
if #placings > 0 then redis.call('ZADD', due, unpack(placings)) end
if #removed > 0 then redis.call('ZREM', due, unpack(removed)) end
return replies
