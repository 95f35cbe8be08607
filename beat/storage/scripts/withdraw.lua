#!lua
-- Takes jobs out of their queues that are no longer wanted. What a worker has begun it leaves: that one must be told, and
-- once: a worker of RQ that is told again while it calls back whoever wants to know of the stop kills itself.
--
-- The record of each run keeps which tick replaced it, before its worker is told. So its outcome can say so, whichever scheduler records it.
--
-- KEYS[1] records           hash  job id → what a run is, as JSON
-- ARGV[1] job_prefix        text  followed by a job id: RQ's hash
-- ARGV[2] queue_prefix      text  followed by the name of a queue: its key
-- ARGV[3] scheduled_prefix  text  followed by the name of a queue: what waits for a retry
-- ARGV[4] kept              s     how long RQ's record of a cancelled job stays
-- ARGV[5] told_prefix       text  followed by a job id: there while its worker is not to be told again
-- ARGV[6] told              ms    for how long
-- ARGV[7] tick              text  the tick that replaces them
-- ARGV[8…] items, each of
-- ITEM[1] job  text  the id of the job
--
-- Replies {{code, words}, …}, one for each item
--   OK       it is in no queue any more, and RQ calls it canceled
--   STARTED  a worker has it, and nobody has told it yet; words: its name
--   TOLD     a worker has it, and was told
--   STALE    it is not in the queue, and nobody is known to have begun it
--   LATER    this script has searched enough: send the item again
local records = KEYS[1]
local job_prefix, queue_prefix, scheduled_prefix, kept, told_prefix, told, tick = unpack(ARGV, 1, 7)

-- include allowed
-- include quoted
-- include remaining

local passable = 500000  -- so many ids of lists are passed in a step

local function kind_of(key) return redis.call('TYPE', key)['ok'] end

local reason = ',"replaced_by":' .. quoted(tick)
local function note(job)  -- only in the record of an open run; a newer tick takes the place of an older one
  local record = kind_of(records) == 'hash' and redis.call('HGET', records, job)
  if not record or string.sub(record, -1) ~= '}' or string.find(record, reason, 1, true) then return end
  if string.find(record, '"outcome":"', 1, true) then return end
  record = string.gsub(record, ',"replaced_by":"[^"]*"', '')
  redis.call('HSET', records, job, string.sub(record, 1, -2) .. reason .. '}')
end

local function tell(job, worker)
  if worker == '' or forbidden(COMMANDS_ON(told_prefix, records)) then return 'STALE', '' end
  note(job)
  if redis.call('SET', told_prefix .. job, worker, 'NX', 'PX', told) then return 'STARTED', worker end
  remaining(told_prefix .. job, told)
  return 'TOLD', ''
end

local function withdraw(job)
  local key = job_prefix .. job
  if kind_of(key) ~= 'hash' then return 'STALE', '' end
  local status, worker, origin = unpack(redis.call('HMGET', key, 'status', 'worker_name', 'origin'))
  if status == 'started' then return tell(job, worker or '') end
  local queue, scheduled = queue_prefix .. (origin or ''), scheduled_prefix .. (origin or '')
  if forbidden(COMMANDS_ON(key, queue, scheduled, records)) then return 'STALE', '' end
  local is_list = kind_of(queue) == 'list'
  if is_list then
    if passable < 0 then return 'LATER', '' end
    passable = passable - redis.call('LLEN', queue)
  end
  local out = is_list and redis.call('LREM', queue, -1, job) > 0
  out = kind_of(scheduled) == 'zset' and redis.call('ZREM', scheduled, job) > 0 or out
  if not out then return 'STALE', '' end
  note(job)
  redis.call('HSET', key, 'status', 'canceled')
  redis.call('EXPIRE', key, kept)
  return 'OK', ''
end

local replies = {}
for i = 8, #ARGV do replies[#replies + 1] = {withdraw(ARGV[i])} end
return replies
