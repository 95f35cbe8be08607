#!lua flags=no-writes
-- Tells of queues how long they are, and who works at them.
--
-- ARGV[1] queue_prefix    text  followed by the name of a queue: the list of its jobs
-- ARGV[2] workers_prefix  text  followed by the name of a queue: the set of the keys of its workers, dead ones among them
-- ARGV[3] worker_prefix   text  followed by the name of a worker: its hash, there for some minutes after it was killed
-- ARGV[4] channel_prefix  text  followed by the name of a worker: the channel that it listens to
-- ARGV[5…] items, each of
-- ITEM[1] name  text  a queue
--
-- Replies {{queued, workers, idle}, …}, one for each item: how many jobs wait there, how many live workers read it and how
-- many of those do nothing; of a thousand workers, if it has more. Workers and idle are -1 where this user may not look
local queue_prefix, workers_prefix, worker_prefix, channel_prefix = unpack(ARGV, 1, 4)

-- include instants
-- include now
-- include allowed

local most, silent_ms = 1000, 90000
local may_listen = not forbidden({{'pubsub', 'numsub', channel_prefix .. 'x'}})

local function is_listening(name)  -- to commands; where nobody knows, it is believed
  local said = may_listen and redis.pcall('PUBSUB', 'NUMSUB', channel_prefix .. name)
  return not said or said['err'] or tonumber(said[2]) > 0
end

local states = {}  -- a worker may read many queues
local function state_of(worker)  -- nothing if it is none that takes jobs: gone, going after this job, or killed
  local h = redis.pcall('HMGET', worker, 'birth', 'state', 'death', 'shutdown_requested_date', 'last_heartbeat')
  if h['err'] or not (h[1] or h[2]) or h[3] or h[4] then return false end
  local seen = to_ms(h[5])  -- one that waits for jobs shows life every seven minutes; until then its channel does
  if seen and now - seen > silent_ms and not is_listening(string.sub(worker, #worker_prefix + 1)) then return false end
  return h[2] or 'started'
end

local function length_of(queue)
  local length = not forbidden({{'llen', queue}}) and redis.pcall('LLEN', queue)
  return type(length) == 'number' and length or 0  -- what is no list has none
end

local function staff(workers)
  if forbidden({{'srandmember', workers, most}, {'hmget', worker_prefix .. 'x', 'state'}}) then return -1, -1 end
  local found, alive, idle = redis.pcall('SRANDMEMBER', workers, most), 0, 0
  for _, worker in ipairs(found) do  -- what is no set has none
    if states[worker] == nil then
      states[worker] = string.sub(worker, 1, #worker_prefix) == worker_prefix and state_of(worker)
    end
    alive = alive + (states[worker] and 1 or 0)
    idle = idle + (states[worker] == 'idle' and 1 or 0)
  end
  return alive, idle
end

local told = {}
for i = 5, #ARGV do told[#told + 1] = {length_of(queue_prefix .. ARGV[i]), staff(workers_prefix .. ARGV[i])} end
return told
