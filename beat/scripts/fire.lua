#!lua
-- Gives ticks their verdict. For each item: guards that only read, then compare-and-set, then everything at once (job,
-- queue, state, index, ledger); no error is possible after an item's first write. One code per item, never an error.
--
-- KEYS[1] due_index        zset   id → due_at in ms
-- KEYS[2] queues           set    RQ's set of queues
-- KEYS[3] announcements    zset   digest → when it lapses, in ms, of each live registry
-- KEYS[4] open             zset   job id → when to look next, in ms: runs whose outcome is not known
-- KEYS[5] records          hash   job id → what a run is, as JSON
-- KEYS[6] events           stream every verdict, for whoever reads it
-- ARGV[1] schedule_prefix  text   followed by an id: the hash of that schedule
-- ARGV[2] template_prefix  text   followed by an id: the fields of its job, as RQ writes them
-- ARGV[3] lock_prefix      text   followed by an id: its lock
-- ARGV[4] announced_prefix text   followed by a digest: id → rev, what that registry declares
-- ARGV[5] job_prefix       text   followed by a job id: RQ's hash
-- ARGV[6] runs_prefix      text   followed by an id: its ledger
-- ARGV[7] token            text   what our locks hold: the name of this beat
-- ARGV[8] history_limit    count  how many verdicts a ledger keeps
-- ARGV[9] events_limit     count  about how many events are kept
-- ARGV[10…] items, each of
-- ITEM[1]  kind       word   fire, skip (ticks pass by), release (nothing was decided), quarantine (cannot be read)
-- ITEM[2]  id         text   the schedule
-- ITEM[3]  rev        text   the definition that was prepared
-- ITEM[4]  tick       time   the tick that was prepared; for skip the first of the stretch
-- ITEM[5]  due        ms     not before
-- ITEM[6]  next       time   the following tick, or nothing when the schedule ends
-- ITEM[7]  next_due   ms     when that is due
-- ITEM[8]  job        text   the id of the job
-- ITEM[9]  queue      text   the key of its queue
-- ITEM[10] at         word   front or back
-- ITEM[11] run        bytes  the end of the job's meta
-- ITEM[12] number     count  for skip: how many ticks
-- ITEM[13] error      text   what went wrong with earlier attempts, or nothing
-- ITEM[14] last       time   for skip: the last of the stretch
-- ITEM[15] reason     text   for skip: why
-- ITEM[16] by         word   for fire: scheduler, catchup or manual
--
-- Replies {now in ms, OK, {which item, code, words}, …}, with those items that are not OK; the first one is 1, and 0 means
-- all of them. The lock goes with the schedule's last item, on every reply but FENCED and EARLY.
--   OK        done
--   BADARG    the item makes no sense; the schedule stays hidden for as long as the lock would have lasted
--   GONE      there is no such schedule
--   BADTYPE   a key is not what it should be, or Redis does not let us use it; looked at again in 30 s
--   BADSTATE  the hash of the schedule, or the template of its jobs, cannot be used; looked at again in 30 s
--   FENCED    the lock is not ours any more
--   STALE     next_run is not this tick: it has its verdict; words: last_job, ours if only the reply was lost
--   OTHERS    a live beat announces the definition that we cannot read: left to it
--   CHANGED   the definition is not the one that was prepared
--   INACTIVE  the schedule is paused, disabled …; words: its state
--   EARLY     not due by Redis' clock; words: the milliseconds to wait
local due_index, queues, announcements, open, records, events = unpack(KEYS)
local schedule_prefix, template_prefix, lock_prefix, announced_prefix, job_prefix, runs_prefix = unpack(ARGV, 1, 6)
local token, history_limit, events_limit = ARGV[7], ARGV[8], ARGV[9]

-- include instants
-- include now
-- include sane
-- include quoted
-- include ledger
-- include allowed

local first, width = 10, 16
local stamp = to_text(tonumber(time[1]), string.format('.%06d', tonumber(time[2])))
local signed = ',"at":"' .. now_text .. '","beat":' .. quoted(token) .. '}'
local enqueued = ',"enqueued":"' .. now_text .. '","n":'
local kinds, pushes, scores, gone, ours, last_code, barred, opened, noted = {}, {}, {}, {}, {}, {}, {}, {}, {}
local outbox_wrong, jobs_exist
local wanted = {fire = true, skip = true, release = true, quarantine = true}

local function kind_once(key)  -- the keys that many items share are looked at once
  kinds[key] = kinds[key] or kind_of(key)
  return kinds[key]
end

local function look_at_page()  -- what many items share, or can be asked at once: locks, jobs, the keys of the outbox
  local ids, locks, hashes = {}, {}, {}
  for i = first, #ARGV, width do
    local n = #ids + 1
    ids[n], locks[n], hashes[n] = ARGV[i + 1], lock_prefix .. ARGV[i + 1], job_prefix .. ARGV[i + 7]
  end
  if #ids == 0 then return end
  for n, holder in ipairs(redis.call('MGET', unpack(locks))) do ours[ids[n]] = holder == token end  -- what is no string is no lock
  local there = redis.pcall('EXISTS', unpack(hashes))  -- what Redis does not let us do is told for each queue
  jobs_exist = type(there) ~= 'number' or there > 0
  for key, wanted in pairs({[open] = 'zset', [records] = 'hash', [events] = 'stream'}) do
    local kind = kind_once(key)
    if kind ~= 'none' and kind ~= wanted then outbox_wrong = key .. ' is a ' .. kind .. ', not a ' .. wanted end
  end
end

local function is_announced(id, rev)
  if kind_once(announcements) ~= 'zset' then return false end
  for _, digest in ipairs(redis.call('ZRANGEBYSCORE', announcements, now, '+inf')) do
    local key = announced_prefix .. digest
    if kind_of(key) == 'hash' and redis.call('HGET', key, id) == rev then return true end
  end
  return false
end

local function makes_sense(kind, tick, due, next, next_due, job, queue, at, number, last)
  if not wanted[kind] then return false end
  if kind == 'release' or kind == 'quarantine' then return true end
  local t, n = to_ms(tick), to_ms(next)
  if not t or not is_count(due) then return false end
  if next ~= '' and not (n and n > t and is_count(next_due)) then return false end
  if kind == 'skip' then return is_count(number) and tonumber(number) > 0 and to_ms(last) ~= nil and to_ms(last) >= t end
  return job ~= '' and queue ~= '' and (at == 'front' or at == 'back')
end

local function queue_problem(id, job, queue)
  if barred[queue] == nil then
    local hash = job_prefix .. job
    barred[queue] = forbidden({{'type', hash}, {'exists', hash}, {'copy', template_prefix .. id, hash, 'replace'}, {'hset', hash, '', ''},
      {'expire', hash, 1}, {'type', queue}, {'rpush', queue, ''}, {'lpush', queue, ''}, {'type', queues}, {'sadd', queues, ''}}) or false
  end
  if barred[queue] then return barred[queue] end
  local kind = jobs_exist and kind_of(job_prefix .. job) or 'none'
  if kind ~= 'none' and kind ~= 'hash' then return job_prefix .. job .. ' is a ' .. kind end
  kind = kind_once(queue)
  if kind ~= 'none' and kind ~= 'list' then return queue .. ' is a ' .. kind .. ', not a queue' end
  kind = kind_once(queues)
  if kind ~= 'none' and kind ~= 'set' then return queues .. ' is a ' .. kind .. ', not a set' end
end

local function move(id, key, next, next_due, error, ...)
  if error ~= '' then redis.call('HSET', key, 'last_error', error) end
  if next == '' then
    redis.call('HDEL', key, 'next_run', 'due_at')
    redis.call('HSET', key, 'state', 'finished', ...)
    scores[id], gone[id] = nil, true
  else
    local due_at = next_due == to_ms(next) and next
      or to_text(math.floor(next_due / 1000), next_due % 1000 ~= 0 and string.format('.%03d', next_due % 1000) or '')
    redis.call('HSET', key, 'next_run', next, 'due_at', due_at, ...)
    scores[id], gone[id] = next_due, nil
  end
end

local function enqueue(id, job, queue, at, meta, ttl)
  local key = job_prefix .. job
  redis.call('COPY', template_prefix .. id, key, 'REPLACE')
  redis.call('HSET', key, 'created_at', stamp, 'enqueued_at', stamp, 'meta', meta)
  if ttl then redis.call('EXPIRE', key, ttl) end
  pushes[queue] = pushes[queue] or {front = {}, back = {}}
  local jobs = pushes[queue][at]
  jobs[#jobs + 1] = job
end

local function note(id, job, queue, tick, by, number, created_at, retries, result_ttl, failure_ttl)
  local record = '{"schedule":' .. quoted(id) .. ',"tick":"' .. tick .. '","by":' .. quoted(by) .. ',"queue":' .. quoted(queue)
    .. enqueued .. number .. ',"life":' .. quoted(created_at or '')
    .. (retries and is_count(retries) and ',"retries":' .. digits_of(number_of(retries)) or '')
    .. (result_ttl and is_count(result_ttl) and ',"result_ttl":' .. digits_of(number_of(result_ttl)) or '')
    .. (failure_ttl and is_count(failure_ttl) and ',"failure_ttl":' .. digits_of(number_of(failure_ttl)) or '') .. '}'
  local n = #opened
  opened[n + 1], opened[n + 2] = now, job
  noted[n + 1], noted[n + 2] = job, record
end

local function later(id, key, code, words)  -- what cannot be enqueued is looked at again in 30 s
  redis.call('HSET', key, 'last_error', words)
  scores[id] = now + 30000
  return code, words
end

local function stale(key) return 'STALE', redis.call('HGET', key, 'last_job') or '' end

local function decide(i)
  local kind, id, rev, tick, due, next, next_due, job, queue, at, run, number, error, last, reason, by = unpack(ARGV, i, i + width - 1)
  if not makes_sense(kind, tick, due, next, next_due, job, queue, at, number, last) then return 'BADARG', '' end
  local key = schedule_prefix .. id
  local h = redis.pcall('HMGET', key, 'state', 'rev', 'next_run', 'due_at', 'run_count', 'skip_count', 'kept', 'result_ttl',
    'failure_ttl', 'created_at')
  local found = not h[1] and kind_of(key)  -- what has a state is a hash
  if found == 'none' then gone[id] = true return 'GONE', '' end
  if found and found ~= 'hash' then scores[id] = now + 30000 return 'BADTYPE', key .. ' is a ' .. found end
  local state, now_rev, next_run, due_at, run_count, skip_count, kept, result_ttl, failure_ttl, created_at = unpack(h)
  local as_prepared = rev ~= '' and now_rev == rev and next_run == tick and due_at == tick and number_of(due) == to_ms(tick)
  local wrong = not (as_prepared and is_count(run_count) and is_count(skip_count))
    and problem(now_rev, next_run, due_at, run_count, skip_count)
  if wrong then scores[id] = now + 30000 return 'BADSTATE', wrong end
  local meta, ttl, retries_left
  if outbox_wrong and (kind == 'fire' or kind == 'skip') then return later(id, key, 'BADTYPE', outbox_wrong) end
  if kind == 'fire' then
    local t = redis.pcall('HMGET', template_prefix .. id, 'meta', 'ttl', 'retries_left')
    found = not t[1] and kind_of(template_prefix .. id)
    if found and found ~= 'hash' then
      return later(id, key, 'BADSTATE', template_prefix .. id .. (found == 'none' and ' is missing' or ' is a ' .. found))
    end
    meta, ttl, retries_left = unpack(t)
    if ttl and not (#ttl <= 10 and string.find(ttl, '^[1-9]%d*$')) then
      return later(id, key, 'BADSTATE', 'the ttl of the job is not a number')
    end
    wrong = queue_problem(id, job, queue)
    if wrong then return later(id, key, 'BADTYPE', wrong) end
  end
  if not ours[id] then
    if tick ~= '' and next_run ~= tick then return stale(key) end  -- ours, perhaps, if its reply was lost
    return 'FENCED', ''
  end
  if state == 'active' and due_at then scores[id] = to_ms(due_at) else gone[id] = true end
  if kind == 'release' then return 'OK', '' end
  if kind == 'quarantine' then
    if now_rev ~= rev then return 'CHANGED', '' end
    if state ~= 'active' then return 'INACTIVE', state or '' end
    if is_announced(id, rev) then return 'OTHERS', '' end
    redis.call('HSET', key, 'state', 'broken', 'last_error', error, 'updated_at', now_text)
    gone[id] = true
    return 'OK', ''
  end
  if next_run ~= tick then return stale(key) end
  if now_rev ~= rev then return 'CHANGED', '' end
  if state ~= 'active' then return 'INACTIVE', state or '' end
  if number_of(due) > now then return 'EARLY', tostring(due - now) end
  local total = digits_of(number_of(kind == 'skip' and skip_count or kind == 'fire' and run_count or '0') + (kind == 'skip' and number or 1))
  local line = kind == 'skip' and '{"type":"skipped","tick":"' .. tick .. '","last":"' .. last .. '","count":' .. number .. ',"reason":'
      .. quoted(reason) .. ',"n":' .. total .. signed
    or '{"type":"enqueued","tick":"' .. tick .. '","job":' .. quoted(job) .. ',"by":' .. quoted(by) .. ',"late_ms":'
      .. digits_of(now - number_of(due)) .. ',"n":' .. total .. signed
  kept = append_verdict(id, line, kept)  -- the first write: if the ledger is no list, it is refused and nothing has happened
  if not kept then return later(id, key, 'BADTYPE', runs_prefix .. id .. ' is a ' .. kind_of(runs_prefix .. id) .. ', not a list') end
  if kind == 'skip' then
    tell(id, 'skipped', tick, '', token, line)
    move(id, key, next, number_of(next_due), error, 'skip_count', total, 'kept', kept)
  else
    enqueue(id, job, queue, at, (meta or '') .. run, ttl)
    note(id, job, queue, tick, by, total, created_at, retries_left, result_ttl, failure_ttl)
    tell(id, 'enqueued', tick, job, token, line)
    move(id, key, next, number_of(next_due), error, 'last_run', tick, 'last_enqueued', now_text, 'last_job', job, 'run_count', total,
      'kept', kept)
  end
  return 'OK', ''
end

if (#ARGV - first + 1) % width ~= 0 then return {now, 'OK', {0, 'BADARG', 'not a whole number of items'}} end
local a_key, a_lock, a_ledger = schedule_prefix .. 'x', lock_prefix .. 'x', runs_prefix .. 'x'
local barred_here = forbidden({{'type', a_key}, {'hmget', a_key, 'x'}, {'hget', a_key, 'x'}, {'hset', a_key, 'x', ''}, {'hdel', a_key, 'x'},
  {'hmget', template_prefix .. 'x', 'x'}, {'mget', a_lock}, {'del', a_lock}, {'zadd', due_index, 0, 'x'}, {'zrem', due_index, 'x'},
  {'lpush', a_ledger, ''}, {'rpop', a_ledger}, {'ltrim', a_ledger, 0, 1}, {'zadd', open, 0, 'x'}, {'hset', records, 'x', ''},
  {'xadd', events, '*', 'x', ''}})
if barred_here then return redis.error_reply('NOPERM ' .. barred_here) end
local replies, locks = {now, 'OK'}, {}
look_at_page()
for i = first, #ARGV, width do  -- a chain is several items of one schedule: its lock goes with the last of them
  local code, words = decide(i)
  if code ~= 'OK' then replies[#replies + 1] = {(i - first) / width + 1, code, words} end
  last_code[ARGV[i + 1]] = code
end
for id, code in pairs(last_code) do
  if code == 'FENCED' or code == 'EARLY' then
    scores[id], gone[id] = nil, nil
  elseif ours[id] then
    locks[#locks + 1] = lock_prefix .. id
  end
end
for queue, ends in pairs(pushes) do
  if #ends.back > 0 then redis.call('RPUSH', queue, unpack(ends.back)) end
  if #ends.front > 0 then redis.call('LPUSH', queue, unpack(ends.front)) end
  redis.call('SADD', queues, queue)
end
if #opened > 0 then
  redis.call('ZADD', open, unpack(opened))
  redis.call('HSET', records, unpack(noted))
end
if kind_once(due_index) == 'zset' or kind_once(due_index) == 'none' then
  local moved, removed = {}, {}
  for id, score in pairs(scores) do moved[#moved + 1], moved[#moved + 2] = score, id end
  for id in pairs(gone) do removed[#removed + 1] = id end
  if #moved > 0 then redis.call('ZADD', due_index, unpack(moved)) end
  if #removed > 0 then redis.call('ZREM', due_index, unpack(removed)) end
end
if #locks > 0 then redis.call('DEL', unpack(locks)) end
return replies
