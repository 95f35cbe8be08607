#!lua
-- Looks at runs in RQ's own records, and hands out those about which there is something to decide: ended, vanished, started
-- and without a sign of life, or running again after they were closed. The others are looked at again later.
--
-- KEYS[1] open               zset   job id → when to look next, in ms
-- KEYS[2] closed             zset   job id → since when, in ms: runs that RQ could start again
-- KEYS[3] records            hash   job id → what a run is, as JSON
-- ARGV[1] job_prefix         text   followed by a job id: RQ's hash
-- ARGV[2] results_prefix     text   followed by a job id: RQ's stream of its results
-- ARGV[3] executions_prefix  text   followed by a job id: RQ's set of its executions
-- ARGV[4] execution_prefix   text   followed by a job id, a colon and an execution: lives as long as its worker shows life
-- ARGV[5] worker_prefix      text   followed by the name of a worker: RQ's hash
-- ARGV[6] channel_prefix     text   followed by the name of a worker: the channel that it listens to
-- ARGV[7] limit              count  how many open runs to look at, at most
-- ARGV[8] interval           ms     how soon to look again
-- ARGV[9] closed_limit       count  how many of the closed to look at
-- ARGV[10] queue_prefix      text   followed by the name of a queue: its key
-- ARGV[11] furthest_open     ms     how far ahead an open run may stand; what stands further is looked at now
-- ARGV[12] open_share        text   the same in ms for each open run: of many, a run may stand further ahead
-- ARGV[13…] items, each of
-- ITEM[1] job        text  a run to be looked for in its queue, instead of all the above
-- ITEM[2] queue      text  the key of its queue
-- ITEM[3] scheduled  text  the key of what waits for a retry
-- ITEM[4] seen       word  1 when it was in the queue just now, else 0
--
-- Replies {now in ms, how many open runs were looked at, {each fact about a run, in the order of `facts` below}, …}
local open, closed, records = KEYS[1], KEYS[2], KEYS[3]
local job_prefix, results_prefix, executions_prefix, execution_prefix, worker_prefix, channel_prefix = unpack(ARGV, 1, 6)
local limit, interval, closed_limit, queue_prefix = ARGV[7], tonumber(ARGV[8]), ARGV[9], ARGV[10]
local furthest_open, open_share = tonumber(ARGV[11]), tonumber(ARGV[12])

-- include instants
-- include now
-- include sane
-- include allowed
-- include ahead

local first, width = 13, 4
local passable = 100000  -- so many ids of lists may be passed, and so many bytes taken, that no page keeps Redis for long
local most_value, most_error, room = 90000, 300000, 1000000
local found, later, lost = {now, 0}, {}, {}
local waiting = {queued = true, scheduled = true, deferred = true, created = true}

local function life_of_worker(job)  -- a worker that runs jobs itself sends no heartbeats meanwhile, but listens
  local name, started = unpack(redis.call('HMGET', job_prefix .. job, 'worker_name', 'started_at'))
  if not name or name == '' then return '0' end
  local said = redis.pcall('PUBSUB', 'NUMSUB', channel_prefix .. name)
  if said['err'] or tonumber(said[2]) == 0 then return '0' end
  if kind_of(worker_prefix .. name) ~= 'hash' then return '1' end
  local state, current, birth = unpack(redis.call('HMGET', worker_prefix .. name, 'state', 'current_job', 'birth'))
  if state ~= 'idle' and (not current or current == job) then return '1' end
  return birth and started and birth <= started and 'left' or '0'  -- a later worker of that name knows nothing of it
end

local function has_heartbeat(key)  -- sent every 30 s; RQ keeps its key for longer, perhaps for the job's time limit
  local at = redis.pcall('HGET', key, 'last_heartbeat')
  if not at then return kind_of(key) == 'hash' end
  at = type(at) == 'string' and tonumber(at)
  return at ~= false and (not at or now - at * 1000 < 60000)
end

local function life_of(job)
  local found = redis.pcall('ZRANGE', executions_prefix .. job, 0, -1)  -- what is no set has none
  for _, execution in ipairs(found) do
    if has_heartbeat(execution_prefix .. job .. ':' .. execution) then return '1' end
  end
  return life_of_worker(job)
end

local function newest_result(job)
  local key, named = results_prefix .. job, {}
  if kind_of(key) ~= 'stream' then return named end
  local entry = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  local pairs_of = entry and entry[2] or {}
  for i = 1, #pairs_of, 2 do named[pairs_of[i]] = pairs_of[i + 1] end
  named['id'] = entry and entry[1]
  return named
end

local function facts(job, where, record, alive, placed)
  local h = redis.call('HMGET', job_prefix .. job, 'status', 'started_at', 'ended_at', 'worker_name', 'origin', 'retries_left',
    'number_of_retries', 'timeout', 'success_callback_timeout', 'failure_callback_timeout')
  local result = newest_result(job)
  local value, exc = h[1] == 'finished' and result['return_value'] or '', h[1] ~= 'finished' and result['exc_string'] or ''
  room = room - #value - #exc
  found[#found + 1] = {job, where, record, h[1] or '', h[2] or '', h[3] or '', h[4] or '', h[5] or '', h[6] or '', h[7] or '',
    h[8] or '', h[9] or '', h[10] or '', alive, placed, result['type'] or '', result['id'] or '', result['worker_name'] or '', result['execution_started_at'] or '',
    result['execution_ended_at'] or '', #value <= most_value and value or '', #exc <= most_error and exc or ''}
end

local function gone(job, where, record)
  local fact = {job, where, record}
  for i = 4, 22 do fact[i] = '' end
  found[#found + 1] = fact
end

local function field_of(job, field)  -- nothing when RQ has no record of it
  local value = redis.pcall('HGET', job_prefix .. job, field)
  return type(value) == 'string' and value
end

local may_sort = not forbidden({{'SORT_RO', open}})  -- what is tried in vain would stand in Redis' log of attacks
local function each_has(ids, field)  -- ids: the first of the index. One command for all of them, if this user may read any key
  local found = may_sort and redis.pcall('SORT_RO', open, 'by', 'nosort', 'limit', 0, #ids, 'get', job_prefix .. '*->' .. field)
  if found and not found['err'] then return found end
  found = {}
  for i, job in ipairs(ids) do found[i] = field_of(job, field) end
  return found
end

local second, byte = math.floor(now / 1000), string.byte
local function is_its_turn(job, seconds)  -- to be asked for a sign of life. Ticks often end in the same digits
  return (second + (byte(job, -1) or 0) + 2 * (byte(job, -12) or 0)) % seconds == 0
end

local function look(job, status, record)  -- how soon to look again, or nothing when it is no open run
  if room < 0 then return 0 end  -- the next page begins here
  if not record or string.find(record, 'outcome":"', 1, true) then return end  -- nobody knows it, or it is closed
  if not status then
    gone(job, 'open', record)
    return furthest_open
  end
  local alive = ''
  if status == 'started' or status == 'canceled' then  -- what is cancelled while it runs goes on, and ends
    alive = life_of(job)
    if status == 'canceled' and alive == '1' then return interval end
  end
  if alive ~= '1' or string.find(record, 'missing":', 1, true) then facts(job, 'open', record, alive, '') end
  return interval
end

local function look_again(job, record)
  local h = redis.pcall('HMGET', job_prefix .. job, 'status', 'started_at', 'ended_at')
  if not record or not h[1] then lost[#lost + 1] = job return end
  local sign = h[1] .. '|' .. (h[2] or '') .. '|' .. (h[3] or '')
  if not string.find(record, '"sign":"' .. sign .. '"', 1, true) then facts(job, 'closed', record, '', '') end
end

local function records_of(ids) return #ids > 0 and redis.call('HMGET', records, unpack(ids)) or {} end

local function holds(list, job)  -- nil when that would take too long to find out
  if kind_of(list) ~= 'list' then return false end
  local length = redis.call('LLEN', list)
  if length > passable then return nil end
  passable = passable - length
  return redis.call('LPOS', list, job) ~= false
end

local function search(job, queue, scheduled, seen)
  local record, status = redis.call('HGET', records, job), field_of(job, 'status')
  if not record or (status ~= 'queued' and status ~= 'scheduled') then return end
  local origin = queue_prefix .. (redis.call('HGET', job_prefix .. job, 'origin') or '')
  local there = kind_of(scheduled) == 'zset' and redis.call('ZSCORE', scheduled, job) ~= false
  if not there then
    there = holds(queue, job)
    if there == nil then there = seen == '1' end
  end
  if not there and origin ~= queue then there = holds(origin, job) ~= false end  -- somebody moved it
  facts(job, 'open', record, '', there and '1' or '0')
end

if kind_of(records) ~= 'hash' then return found end
if #ARGV >= first then
  for i = first, #ARGV, width do
    local job, queue, scheduled, seen = unpack(ARGV, i, i + width - 1)
    search(job, queue, scheduled, seen)
  end
  return found
end
if kind_of(open) == 'zset' then
  local number = redis.call('ZCARD', open)
  bring_near(open, math.max(furthest_open, interval, number * open_share), 0)
  local ids = redis.call('ZRANGEBYSCORE', open, '-inf', now, 'LIMIT', 0, limit)
  local closer, size = {}, 0
  local backlog, seconds = number * open_share, number > tonumber(limit) and 10 or 5
  local statuses, enqueued = each_has(ids, 'status'), backlog > interval and each_has(ids, 'enqueued_at')
  local function again(job, wait)
    if not wait then lost[#lost + 1] = job return end
    later[size + 1], later[size + 2], size = digits_of(math.floor(now + wait)), job, size + 2
  end
  for i = 1, #ids do
    local job, status = ids[i], statuses[i]
    if waiting[status] then  -- of a long backlog, each is looked at less often the longer it waits
      again(job, enqueued and math.max(interval, math.min(backlog, (now - (to_ms(enqueued[i]) or 0)) / 5)) or interval)
    elseif status == 'started' and not is_its_turn(job, seconds) then
      again(job, interval)
    else
      closer[#closer + 1], statuses[job] = job, status
    end
  end
  for i, record in ipairs(records_of(closer)) do again(closer[i], look(closer[i], statuses[closer[i]], record)) end
  found[2] = room < 0 and tonumber(limit) or #ids
  if #later > 0 then redis.call('ZADD', open, unpack(later)) end
  if #lost > 0 then redis.call('ZREM', open, unpack(lost)) end
end
lost = {}
if tonumber(closed_limit) > 0 and kind_of(closed) == 'zset' then
  local pages = math.ceil(redis.call('ZCARD', closed) / closed_limit)  -- another page each time, whichever beat asks
  local rank = pages > 0 and math.floor(now / math.max(interval, 1)) % pages * closed_limit or 0
  local ids = redis.call('ZREVRANGE', closed, rank, rank + closed_limit - 1)
  for i, record in ipairs(records_of(ids)) do look_again(ids[i], record) end
  if #lost > 0 then
    redis.call('ZREM', closed, unpack(lost))
    redis.call('HDEL', records, unpack(lost))
  end
end
return found
