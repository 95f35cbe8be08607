#!lua
-- Brings definitions into Redis, from the code, from data or from an operator, each by compare-and-set on what was seen when
-- it was prepared. Of the code an unknown rev is newer and wins; one that was replaced comes back only when no live beat
-- announces a newer one. A tick that is due already is never moved.
--
-- KEYS[1] schedules        set     every id
-- KEYS[2] due              zset    id → due_at in ms
-- KEYS[3] meta             hash    format
-- KEYS[4] events           stream  every change, for whoever reads it
-- KEYS[5] announcements    zset    digest → when it lapses, in ms, of each live registry
-- KEYS[6] functions        zset    path → when it was last announced, in ms: what may be scheduled from data
-- ARGV[1] schedule_prefix  text    followed by an id: the hash of that schedule
-- ARGV[2] template_prefix  text    followed by an id: the fields of its job, as RQ writes them
-- ARGV[3] announced_prefix text    followed by a digest: id → rev, what that registry declares
-- ARGV[4] runs_prefix      text    followed by an id: its ledger
-- ARGV[5] format           count   the format of the keys that this beat writes
-- ARGV[6] beat             text    who registers
-- ARGV[7] history_limit    count   how many verdicts a ledger keeps
-- ARGV[8] events_limit     count   about how many events are kept
-- ARGV[9] index_prefix     text    followed by a state: the ids of all that are in it
-- ARGV[10] app_prefix      text    followed by an application: the ids that its code has declared
-- ARGV[11] followers_prefix text followed by an id: the ids of those that follow it
-- ARGV[12…] items, each of
-- ITEM[1]  id          text   the schedule
-- ITEM[2]  rev         text   the digest of its definition
-- ITEM[3]  seen_rev    text   the rev that the beat saw, or nothing
-- ITEM[4]  seen_next   text   the next_run that it saw, or nothing
-- ITEM[5]  seen_state  word   the state that it saw, or nothing
-- ITEM[6]  state       word   the state from now on
-- ITEM[7]  next        time   next_run from now on; nothing when there is none, `keep` when it stays
-- ITEM[8]  next_due    ms     when that is due
-- ITEM[9]  rule        text   all that decides its ticks, as JSON
-- ITEM[10] origin      word   code, api (from data), or operator (the rule alone changes: no template, no rev of the code)
-- ITEM[11] declared    text   the rev by which the code announces it; another than rev where an operator has overridden it
-- ITEM[12] app         text   the application, for code
-- ITEM[13] func        text   for api: the function, which must be one of those that were announced
-- ITEM[14] version     count  the version that it must have; nothing for any
-- ITEM[15] follows     text   the schedule after whose successes it ticks, or nothing
-- ITEM[16] fields      count  how many of the values that come then are names and values of the hash
-- ITEM[17] template    count  how many after those are names and values of the job; 0 when it is that of the item before
--
-- Replies {now in ms, {code, words}, …}, one for each item
--   NEW       it was not there
--   UPDATED   the definition was replaced; next_run stays; words: the former definition, if it has at most 16 KB
--   MOVED     next_run moved; words: from where, and after a blank the former definition, if it has at most 16 KB
--   BACK      it was held, and nothing else about it is new
--   OLDER     a live beat announces a newer definition; words: its rev
--   RETRY     the schedule changed while this was prepared: look again
--   CONFLICT  it has another version; words: which
--   TAKEN     the id is that of a schedule of another origin; words: which
--   SHARED    another live application declares it just so, and keeps it; words: which
--   OWNED     another live application declares it otherwise, and keeps it; words: which
--   HIDDEN    no application lets this function be scheduled from data
--   BADTYPE   a key is not what it should be
--   BADSTATE  a counter of the schedule is not a number: it waits for a person
--   NEWER     the keys were written by a newer beat: left alone
local schedules, due, meta, events, announcements, functions = unpack(KEYS)
local schedule_prefix, template_prefix, announced_prefix, runs_prefix = unpack(ARGV, 1, 4)
local format, beat, history_limit, events_limit, index_prefix, app_prefix = ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local followers_prefix = ARGV[11]

-- include instants
-- include now
-- include sane
-- include quoted
-- include outbox
-- include ledger
-- include index
-- include announced
-- include allowed

local first, width = 12, 17
local added, placings, removed, members = {}, {}, {}, {}

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
  for _, digest in ipairs(mine and live() or {}) do
    local other = announced_as(id, digest)
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

local function record(id, type, rev, rule, was, from, next)  -- the ledger knows which definition was in force when
  local is_rule = was and string.find(was, '^{.*}$') and not string.find(was, '%c') and pcall(cjson.decode, was)
  local line = '{"type":"' .. type .. '","rev":' .. quoted(rev) .. ',"rule":' .. rule .. ',"was":' .. (is_rule and was or 'null')
    .. ',"from":' .. quoted(from) .. ',"next":' .. quoted(next) .. ',"at":"' .. now_text .. '","beat":' .. quoted(beat) .. '}'
  append_other(id, line, schedule_prefix .. id)
  tell(id, type, line, 'tick', next, 'job', '', 'by', beat)
end

local job  -- the newest template: the first and the last of its words, and a key that has it
local function write_job(key)
  if job.key and job.key ~= key then return redis.call('COPY', job.key, key, 'REPLACE') end
  redis.call('DEL', key)
  redis.call('HSET', key, unpack(ARGV, job.first, job.last))
  job.key = key
end

local function other(key, kind, wanted)
  if kind ~= 'none' and kind ~= wanted then return key .. ' is a ' .. kind .. ', not a ' .. wanted end
end

local function misplaced(id)  -- what is wrong, or nothing; whether there is a hash; whether there is a ledger
  local key, runs = schedule_prefix .. id, runs_prefix .. id
  local hash, ledger = kind_of(key), kind_of(runs)
  return other(key, hash, 'hash') or other(runs, ledger, 'list'), hash ~= 'none', ledger ~= 'none'
end

local function refused(origin, func, source)  -- why somebody may not write here: a code, and words
  if source and origin ~= 'operator' and source ~= origin then return 'TAKEN', source end
  if origin == 'api' and not redis.call('ZSCORE', functions, func) then return 'HIDDEN', func end
end

local function observe(id, first_field, fields, was)  -- among those that have a monitor; an index, as the others
  local is_monitored = false
  for i = first_field, first_field + fields - 1, 2 do is_monitored = is_monitored or ARGV[i] == 'monitor' end
  if is_monitored then redis.pcall('SADD', index_prefix .. 'monitored', id) elseif was then redis.pcall('SREM', index_prefix .. 'monitored', id) end
end

local function upsert(at)
  local id, rev, seen_rev, seen_next, seen_state, state, next, next_due, rule, origin, declared, app, func, version, follows, fields, template = unpack(ARGV, at, at + width - 1)
  local key = schedule_prefix .. id
  local wrong, is_there, has_ledger = misplaced(id)
  if wrong then return 'BADTYPE', wrong end
  local h = redis.call('HMGET', key, 'rev', 'next_run', 'state', 'due_at', 'revs', 'run_count', 'skip_count', 'version', 'rule', 'source',
    'app', 'pause_until', 'unannounced_at', 'paused_at', 'follows', 'monitor', 'definition', 'last_run', 'last_skip')
  local now_rev, next_run, now_state, due_at, revs, run_count, skip_count, now_version, was, source, was_app, pause_until, held, paused_at, followed, monitor, former, last_run, last_skip = unpack(h, 1, 19)
  local code, words = refused(origin, func, source)
  if code then return code, words end
  if (now_rev or '') ~= seen_rev or (next_run or '') ~= seen_next or (now_state or '') ~= seen_state then return 'RETRY', '' end
  if (to_ms(next) or math.huge) <= math.max(to_ms(last_run) or 0, to_ms(last_skip) or 0) then return 'RETRY', '' end  -- it was decided since
  if version ~= '' and version ~= (now_version or '') then return 'CONFLICT', now_version or '' end
  wrong = problem(rev, nil, nil, run_count, skip_count, key)
  if wrong then return 'BADSTATE', wrong end
  local other = origin == 'code' and now_rev and was_app and was_app ~= app and not held
  if other and is_announced(id, nil, was_app) then return now_rev == rev and 'SHARED' or 'OWNED', was_app end
  local newer = origin == 'code' and now_rev ~= rev and newer_elsewhere(id, declared, revs or '')
  if newer then return 'OLDER', newer end

  local placed = to_ms(next_run) and to_ms(due_at)
  if placed and to_ms(next_run) <= now and (now_state == 'active' or now_state == 'paused') and next ~= 'keep' then  -- be it held back until later
    next = 'keep'
    if state == 'finished' then state = 'active' end  -- the tick that is due comes first, then the end
  end
  if now_state == 'broken' and paused_at and state == 'active' then state = 'paused' end  -- so it was before it broke
  local moves = next ~= 'keep' and next ~= (next_run or '')
  local back = held and now_rev == rev and now_state == state and not moves and was_app == app
  code = not now_rev and 'NEW' or moves and 'MOVED' or back and 'BACK' or 'UPDATED'
  if is_there then
    redis.call('HDEL', key, 'cron', 'every', 'follows', 'declared', 'declared_rev')
    if origin == 'operator' then
      redis.call('HDEL', key, 'override', 'overridden_by', 'overridden_at')
    else
      redis.call('HDEL', key, 'unannounced_at', 'module', 'host', 'file', 'result_ttl', 'failure_ttl', 'job_meta', 'overlap', 'jitter', 'max_runs', 'misfire', 'misfire_after', 'exclude', 'group', 'route', 'slow', 'requires', 'monitor')
    end
  end
  local written = {'rev', rev, 'rule', rule, 'state', state, 'updated_at', now_text, 'version', (tonumber(now_version or '') or 0) + (back and 0 or 1),
    unpack(ARGV, at + width, at + width + fields - 1)}
  if origin ~= 'operator' then add(written, 'revs', newest_first(declared, revs or ''), 'source', origin) end
  if origin == 'code' then
    add(written, 'app', app)
    if was_app and was_app ~= app then redis.pcall('SREM', app_prefix .. was_app, id) end
    members[app] = members[app] or {}
    add(members[app], id)
  end
  if not now_rev then
    add(written, 'created_at', now_text, 'run_count', run_count or '0', 'skip_count', skip_count or '0')
    if not has_ledger then add(written, 'kept', '0') end  -- so that its first verdict need not count
  end
  if next == '' then
    redis.call('HDEL', key, 'next_run', 'due_at')
    placed = nil
  elseif next ~= 'keep' then
    placed = tonumber(next_due)
    add(written, 'next_run', next, 'due_at', due_text(next, placed))
  end
  redis.call('HSET', key, unpack(written))
  if origin ~= 'operator' then write_job(template_prefix .. id) end
  if followed and followed ~= follows then redis.pcall('SREM', followers_prefix .. followed, id) end
  if follows ~= '' then redis.pcall('SADD', followers_prefix .. follows, id) end  -- an index, as the others
  if origin ~= 'operator' then observe(id, at + width, fields, monitor) end
  local awake = state == 'paused' and to_ms(pause_until)
  if state == 'active' and placed then add(placings, placed, id) elseif awake then add(placings, awake, id) else add(removed, id) end
  add(added, id)
  if state ~= now_state and (now_state or state ~= 'active') then enlist(id, state) end
  local overridden = is_there and redis.call('HEXISTS', key, 'override') == 1
  if origin == 'operator' then redis.pcall(overridden and 'SADD' or 'SREM', index_prefix .. 'overridden', id) end
  local type = code == 'NEW' and 'registered' or origin == 'operator' and (overridden and 'rescheduled' or 'reset') or string.lower(code)
  if not back then record(id, type, rev, rule, was, next_run or '', next == 'keep' and (next_run or '') or next) end
  former = former and #former <= 16384 and former
  if code == 'MOVED' then return code, (next_run or '') .. (former and ' ' .. former or '') end
  return code, code == 'UPDATED' and former or ''
end

local function refusal()
  local kinds = {[schedules] = 'set', [due] = 'zset', [meta] = 'hash', [events] = 'stream', [announcements] = 'zset', [functions] = 'zset'}
  for key, wanted in pairs(kinds) do
    local kind = kind_of(key)
    if kind ~= 'none' and kind ~= wanted then return {'BADTYPE', key .. ' is a ' .. kind .. ', not a ' .. wanted} end
  end
  local written = tonumber(redis.call('HGET', meta, 'format') or format)
  if written ~= tonumber(format) then return {'NEWER', tostring(written)} end
end

local a_key, a_job, a_ledger, an_index = schedule_prefix .. 'x', template_prefix .. 'x', runs_prefix .. 'x', index_prefix .. 'x'
local an_app, a_set = app_prefix .. 'x', followers_prefix .. 'x'
local barred_here = forbidden({{'hmget', a_key, 'x'}, {'hget', a_key, 'x'}, {'hset', a_key, 'x', ''}, {'hdel', a_key, 'x'}, {'hexists', a_key, 'x'},
  {'hsetnx', meta, 'x', ''}, {'del', a_job}, {'hset', a_job, 'x', ''},
  {'copy', a_job, a_job, 'REPLACE'},
  {'sadd', a_set, 'x'}, {'srem', a_set, 'x'}, {'sadd', schedules, 'x'}, {'srem', schedules, 'x'}, {'zadd', due, 0, 'x'},
  {'zrem', due, 'x'}, {'sadd', an_index, 'x'}, {'srem', an_index, 'x'}, {'zadd', an_index, 0, 'x'}, {'zrem', an_index, 'x'}, {'del', an_index},
  {'sadd', an_app, 'x'}, {'srem', an_app, 'x'}, {'lpush', a_ledger, ''}, {'rpop', a_ledger}, {'ltrim', a_ledger, 0, 1}, {'xadd', events, '*', 'x', ''}})
if barred_here then return redis.error_reply('NOPERM ' .. barred_here) end
local barred = refusal()
if not barred then redis.call('HSETNX', meta, 'format', format) end
local replies, at = {now}, first
while at <= #ARGV do
  local job_at = at + width + ARGV[at + 15]
  local next_at = job_at + ARGV[at + 16]
  if next_at > job_at then job = {first = job_at, last = next_at - 1} end
  replies[#replies + 1] = barred or {upsert(at)}
  at = next_at
end
if #added > 0 then
  redis.call('SADD', schedules, unpack(added))
  arrange(added)
end
for app, ids in pairs(members) do redis.pcall('SADD', app_prefix .. app, unpack(ids)) end  -- an index, as the others
if #placings > 0 then redis.call('ZADD', due, unpack(placings)) end
if #removed > 0 then redis.call('ZREM', due, unpack(removed)) end
return replies
