#!lua
-- Takes jobs out of their queues that are no longer wanted. What a worker has begun it leaves: that one must be told.
--
-- ARGV[1] job_prefix  text  followed by a job id: RQ's hash
-- ARGV[2] kept        s     how long RQ's record of a cancelled job stays
-- ARGV[3…] items, each of
-- ITEM[1] job        text  the id of the job
-- ITEM[2] queue      text  the key of its queue
-- ITEM[3] scheduled  text  the key of what waits for a retry
--
-- Replies {{code, words}, …}, one for each item
--   OK       it is in no queue any more, and RQ calls it canceled
--   STARTED  a worker has it; words: its name
--   STALE    it is not in the queue, and nobody has begun it
local job_prefix, kept = ARGV[1], ARGV[2]
local first, width = 3, 3

local function kind_of(key) return redis.call('TYPE', key)['ok'] end

local function withdraw(job, queue, scheduled)
  local key = job_prefix .. job
  if kind_of(key) ~= 'hash' then return 'STALE', '' end
  local status, worker = unpack(redis.call('HMGET', key, 'status', 'worker_name'))
  if status == 'started' then return 'STARTED', worker or '' end
  local out = kind_of(queue) == 'list' and redis.call('LREM', queue, -1, job) > 0
  out = kind_of(scheduled) == 'zset' and redis.call('ZREM', scheduled, job) > 0 or out
  if not out then return 'STALE', '' end
  redis.call('HSET', key, 'status', 'canceled')
  redis.call('EXPIRE', key, kept)
  return 'OK', ''
end

local replies = {}
for i = first, #ARGV, width do replies[#replies + 1] = {withdraw(unpack(ARGV, i, i + width - 1))} end
return replies
