#!lua
-- Writes what became of runs, each by compare-and-set on its record, so that a run is closed once: outcome, counters,
-- ledger and event in one step. Also opens a run again that RQ started once more, and notes what was seen of one.
--
-- KEYS[1] open             zset    job id → when to look next, in ms
-- KEYS[2] closed           zset    job id → since when, in ms: runs that RQ could start again
-- KEYS[3] records          hash    job id → what a run is, as JSON
-- KEYS[4] events           stream  every outcome, for other programs
-- KEYS[5] waiting_slots    zset    slot → when to look next, in ms: those for which ticks wait
-- KEYS[6] fanout           zset    `schedule tick job` of each success that has too many followers for one step → when, in ms
-- ARGV[1] schedule_prefix  text    followed by an id: the hash of that schedule
-- ARGV[2] runs_prefix      text    followed by an id: its ledger
-- ARGV[3] job_prefix       text    followed by a job id: RQ's hash
-- ARGV[4] results_prefix   text    followed by a job id: RQ's stream of its results
-- ARGV[5] token            text    the name of this beat
-- ARGV[6] history_limit    count   how many verdicts a ledger keeps
-- ARGV[7] events_limit     count   about how many events are kept
-- ARGV[8] watched_limit    count   how many closed runs are watched
-- ARGV[9] running_prefix   text    followed by a slot: the jobs that take up its room
-- ARGV[10] index_prefix     text   followed by `failing`: the ids of all whose last run failed
-- ARGV[11] waiting_prefix   text   followed by a slot: the ticks that wait for room
-- ARGV[12] followers_prefix text   followed by an id: those that fire when it has succeeded
-- ARGV[13] slow_prefix      text   followed by an id: which of its last runs were slow, and when
-- ARGV[14] shards_prefix    text   followed by the job of a broadcast tick: what became of each part
-- ARGV[15…] items, each of
-- ITEM[1]  kind       word   close, reopen, mark (only the record changes), forget (the record makes no sense)
-- ITEM[2]  job        text   the id of the job
-- ITEM[3]  seen       text   the record that was seen
-- ITEM[4]  record     text   the record from now on; nothing when the run needs no more watching
-- ITEM[5]  sign       text   status and ended_at of RQ's hash, as they were seen; nothing when it was gone
-- ITEM[6]  id         text   the schedule
-- ITEM[7]  tick       text   the tick, or nothing
-- ITEM[8]  outcome    word   succeeded, failed, stopped, lost; for reopen: reopened
-- ITEM[9]  entry      text   the line of the ledger, as JSON, without its end
-- ITEM[10] was        word   the outcome that this one replaces, or nothing
-- ITEM[11] was_ended  time   when that was, or nothing
-- ITEM[12] ended      time   when the run ended, or nothing if that is unknown
-- ITEM[13] duration   text   seconds, or nothing
-- ITEM[14] error      text   what went wrong, or nothing
-- ITEM[15] ttl        text   for how many ms RQ's records stay, 0 for not at all; nothing when RQ has seen to that
-- ITEM[16] registry   text   the key of RQ's registry that holds the job, for that
-- ITEM[17] life       time   when the schedule came that fired it: what was removed and came again counts from nought
-- ITEM[18] group      text   the group whose room it has, or nothing
-- ITEM[19] part       text   of a broadcast: the job of its tick, which part this one is, and of how many; or nothing
--
-- Replies {{code, words}, …}, one for each item
--   OK       done
--   STALE    the record is not the one that was seen: somebody else was here
--   CHANGED  RQ's records are not what was seen, or too many successes are still to be handed on: look again
--   LATER    this script has done enough: send the item again
--   BADARG   the item makes no sense
--   BADTYPE  a key is not what it should be
local open, closed, records, events, waiting_slots, fanout = unpack(KEYS)
local schedule_prefix, runs_prefix, job_prefix, results_prefix, token = unpack(ARGV, 1, 5)
local history_limit, events_limit, watched_limit, running_prefix, index_prefix = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local waiting_prefix, followers_prefix, slow_prefix, shards_prefix = ARGV[11], ARGV[12], ARGV[13], ARGV[14]

-- include instants
-- include now
-- include sane
-- include quoted
-- include outbox
-- include ledger
-- include words
-- include allowed
-- include acl
-- include followers

local first, width = 15, 19
local most, item_work, most_pending = 500, 5, 1000  -- followers in a step, how many of them cost as much as a run, successes in `fanout`
local remembered = 30 * 86400 * 1000  -- ms for which the parts of a broadcast are known that have not all succeeded
local counters = {succeeded = 'success_count', failed = 'failure_count', lost = 'failure_count', stopped = 'stopped_count'}
local is_failure = {failed = true, lost = true}
local severity = {succeeded = 1, stopped = 2, lost = 3, failed = 4}

local function passed(text)  -- when that was; 0 if never, or by a clock that was ahead: it would hide what comes
  local at = to_ms(text) or 0
  return at <= now + 60000 and at or 0
end

local function state_of(id, key, outcome, was, was_ended, ended, duration, error)  -- the fields of the schedule's hash
  local h = redis.call('HMGET', key, 'success_count', 'failure_count', 'stopped_count', 'consecutive_failures', 'last_success',
    'last_failure', 'state', 'ends')
  local n = {success_count = count_of(h[1]), failure_count = count_of(h[2]), stopped_count = count_of(h[3])}
  local before, streak, succeeded_at, failed_at = count_of(h[4]), count_of(h[4]), passed(h[5]), passed(h[6])
  if counters[was] then
    n[counters[was]] = math.max(n[counters[was]] - 1, 0)
    if is_failure[was] and (to_ms(was_ended) or 0) > succeeded_at then streak = math.max(streak - 1, 0) end
  end
  local fields = {}
  if counters[outcome] then  -- runs are not closed in the order in which they ended: what is older changes nothing but counts
    n[counters[outcome]] = n[counters[outcome]] + 1
    local at = to_ms(ended) and ended or now_text
    local at_ms = to_ms(at)
    if outcome == 'succeeded' and at_ms >= succeeded_at then
      fields = {'last_success', at}
      if at_ms >= failed_at then streak = 0 end
    end
    if is_failure[outcome] and at_ms > succeeded_at then streak = streak + 1 end
    if is_failure[outcome] and at_ms >= failed_at then
      fields = {'last_failure', at}
      if h[7] ~= 'broken' then fields[3] = 'last_error' fields[4] = error end  -- there it says why
    end
    if duration ~= '' and at_ms >= math.max(succeeded_at, failed_at) then
      fields[#fields + 1] = 'last_duration' fields[#fields + 1] = duration
    end
    fields[#fields + 1] = 'ends' fields[#fields + 1] = one_more(h[8], outcome, 1)
  end
  for name, value in pairs(n) do fields[#fields + 1] = name fields[#fields + 1] = string.format('%.0f', value) end
  if (streak > 0) ~= (before > 0) then redis.call(streak > 0 and 'SADD' or 'SREM', index_prefix .. 'failing', id) end
  fields[#fields + 1] = 'consecutive_failures' fields[#fields + 1] = string.format('%.0f', streak)
  return fields
end

local function expire(job, ttl, registry)  -- the user's own result_ttl or failure_ttl, now that the outcome is recorded
  if ttl == '0' then
    redis.call('DEL', job_prefix .. job, results_prefix .. job)
    if kind_of(registry) == 'zset' then redis.call('ZREM', registry, job) end
  else
    redis.call('PEXPIRE', job_prefix .. job, ttl)
    redis.call('PEXPIRE', results_prefix .. job, ttl)
    if kind_of(registry) == 'zset' then redis.call('ZADD', registry, 'XX', math.floor((now + ttl) / 1000), job) end
  end
end

local function leave_slots(id, group, job)
  for _, slot in ipairs(group ~= '' and {id, '@' .. group} or {id}) do
    if redis.call('ZREM', running_prefix .. slot, job) == 1 then redis.call('ZADD', waiting_slots, 'XX', 0, slot) end  -- there is room: it comes first
  end
end

local function gather(part, outcome, error)  -- of a tick that was broadcast: its outcome, nothing while parts go on; as what it was counted; why
  local job, number, all = string.match(part, '^(%S+) (%d+) (%d+)$')
  local key, worst, why = shards_prefix .. job, 'succeeded', ''
  if outcome == 'reopened' then redis.call('HDEL', key, number) else redis.call('HSET', key, number, outcome .. ' ' .. error) end
  redis.call('PEXPIRE', key, remembered)
  local was, ended = redis.call('HGET', key, 'counted') or '', redis.call('HLEN', key)
  for _, each in ipairs(redis.call('HVALS', key)) do
    local how, words = string.match(each, '^(%a+) (.*)$')
    if severity[how] and severity[how] > severity[worst] then worst, why = how, words end
  end
  if ended - (was ~= '' and 1 or 0) < tonumber(all) then
    redis.call('HDEL', key, 'counted')
    return 'reopened', was, ''
  end
  redis.call('HSET', key, 'counted', worst)
  if worst == 'succeeded' then redis.call('DEL', key) end  -- RQ starts none of them again
  return worst, was, why
end

local function followers_of(id)  -- how many
  return kind_of(followers_prefix .. id) == 'set' and redis.call('SCARD', followers_prefix .. id) or 0
end

local successes, work = {}, 0
local function be_followed(id, job)  -- each that follows it has a tick from now on, once for this success
  local before = successes[id] or 0  -- those of this step have each its own microsecond
  local tick = before == 0 and now_text or string.sub(now_text, 1, -2) .. string.format('%03dZ', before)
  successes[id] = (before + 1) % 1000
  local number = followers_of(id)
  if number > most then redis.call('ZADD', fanout, now, id .. ' ' .. tick .. ' ' .. job) return end  -- `follow` hands it on
  work = work + number
  for _, each in ipairs(number > 0 and redis.call('SMEMBERS', followers_prefix .. id) or {}) do
    if not hand_on(id, each, tick, job) then redis.call('SREM', followers_prefix .. id, each) end  -- it is gone, or follows another
  end
end

local function remember_slow(id, key, job, duration)  -- the newest so many, for so long
  local after, times, window = string.match(redis.call('HGET', key, 'slow') or '', '^(%d+) (%d+) (%d+)$')
  if not after or not (is_count(after) and is_count(times) and is_count(window)) then return end  -- anybody can write there
  if duration == '' or tonumber(duration) * 1000 < tonumber(after) then return end
  local slow = slow_prefix .. id
  redis.call('ZADD', slow, now, job)
  redis.call('ZREMRANGEBYSCORE', slow, string.format('(%.0f', now), '+inf')  -- Redis' clock was ahead: they would outlive the newest
  redis.call('ZREMRANGEBYRANK', slow, 0, -times - 1)
  redis.call('PEXPIRE', slow, window)
end

local function watch(job, record)  -- what RQ could start again is watched, the newest so many
  redis.call('ZREM', open, job)
  if record == '' then
    redis.call('ZREM', closed, job)
    redis.call('HDEL', records, job)
    return
  end
  redis.call('HSET', records, job, record)
  redis.call('ZADD', closed, 'NX', now, job)
  local extra = redis.call('ZCARD', closed) - watched_limit
  if extra > 0 then
    local oldest = redis.call('ZRANGE', closed, 0, math.min(extra, 100) - 1)
    redis.call('ZREM', closed, unpack(oldest))
    redis.call('HDEL', records, unpack(oldest))
  end
end

local function sign_of(job)
  if kind_of(job_prefix .. job) ~= 'hash' then return '' end
  local h = redis.call('HMGET', job_prefix .. job, 'status', 'started_at', 'ended_at')
  return h[1] and h[1] .. '|' .. (h[2] or '') .. '|' .. (h[3] or '') or ''
end

local function misplaced(id, group, part)
  local wanted = {[open] = 'zset', [closed] = 'zset', [events] = 'stream', [runs_prefix .. id] = 'list', [schedule_prefix .. id] = 'hash',
    [running_prefix .. id] = 'zset', [waiting_slots] = 'zset', [index_prefix .. 'failing'] = 'set', [slow_prefix .. id] = 'zset', [fanout] = 'zset'}
  if group ~= '' then wanted[running_prefix .. '@' .. group] = 'zset' end
  if part ~= '' then wanted[shards_prefix .. string.match(part, '^%S+')] = 'hash' end
  for key, type in pairs(wanted) do
    local kind = kind_of(key)
    if kind ~= 'none' and kind ~= type then return key .. ' is a ' .. kind .. ', not a ' .. type end
  end
end

local function settle(i)
  local kind, job, seen, record, sign, id, tick, outcome, entry, was, was_ended, ended, duration, error, ttl, registry, life, group, part = unpack(ARGV, i, i + width - 1)
  if kind_of(records) ~= 'hash' or redis.call('HGET', records, job) ~= seen then return 'STALE', '' end
  if part ~= '' and not string.find(part, '^%S+ %d+ %d+$') then return 'BADARG', '' end
  local wrong = misplaced(id, group, part)
  if wrong then return 'BADTYPE', wrong end
  if kind == 'forget' then
    watch(job, '')
    leave_slots(id, group, job)
    return 'OK', ''
  end
  if sign_of(job) ~= sign then return 'CHANGED', '' end
  if outcome == 'succeeded' and followers_of(id) > most and redis.call('ZCARD', fanout) >= most_pending then return 'CHANGED', '' end
  if kind == 'mark' then redis.call('HSET', records, job, record) return 'OK', '' end
  if not (kind == 'reopen' or (kind == 'close' and counters[outcome])) or not is_count(ttl == '' and '0' or ttl) then
    return 'BADARG', ''
  end
  if kind == 'reopen' then
    redis.call('ZREM', closed, job)
    redis.call('ZADD', open, now, job)
    redis.call('HSET', records, job, record)
    if kind_of(schedule_prefix .. id) == 'hash' and redis.call('HGET', schedule_prefix .. id, 'overlap') then
      redis.call('ZADD', running_prefix .. id, now, job)
    end
    if group ~= '' then redis.call('ZADD', running_prefix .. '@' .. group, now, job) end
  else
    watch(job, record)
    leave_slots(id, group, job)
    if ttl ~= '' then expire(job, ttl, registry) end
  end
  local line = entry .. ',"at":"' .. now_text .. '","beat":' .. quoted(token) .. '}'
  if kind_of(schedule_prefix .. id) == 'hash' then
    local key, of = schedule_prefix .. id, string.match(part, '^%S+') or job
    local counted, before = outcome, was
    if part ~= '' then counted, before, error = gather(part, outcome, error) end
    if life == '' or life == redis.call('HGET', key, 'created_at') then
      if part == '' or counted ~= before and (counters[counted] or counters[before]) then
        redis.call('HSET', key, unpack(state_of(id, key, counted, before, was_ended, ended, duration, error)))
      end
      if kind == 'close' then remember_slow(id, key, job, duration) end
      if counted == 'succeeded' and before ~= 'succeeded' then be_followed(id, of) end
    end
    append_other(id, line, key)
  end
  tell(id, outcome, line, 'tick', tick, 'job', job, 'by', token)
  return 'OK', ''
end

if (#ARGV - first + 1) % width ~= 0 then return {{'BADARG', 'not a whole number of items'}} end
for i = first, #ARGV, width do
  local hash, results, registry, ttl = job_prefix .. ARGV[i + 1], results_prefix .. ARGV[i + 1], ARGV[i + 15], ARGV[i + 14]
  local barred = ttl ~= '' and forbidden(COMMANDS_ON(hash, results, registry))
  if barred then return redis.error_reply('NOPERM ' .. barred) end
end
local replies = {}
for i = first, #ARGV, width do
  if work >= most then
    replies[#replies + 1] = {'LATER', ''}
  else
    replies[#replies + 1] = {settle(i)}
    work = work + item_work
  end
end
return replies
