#!lua
-- Hands out the slots for which ticks wait, those first that were looked at longest ago, and takes out what holds room
-- without being a run.
--
-- KEYS[1] waiting_slots    zset   slot → when to look next, in ms
-- KEYS[2] open             zset   job id → when to look next, in ms: runs whose outcome is not known
-- ARGV[1] schedule_prefix  text   followed by an id: the hash of that schedule
-- ARGV[2] running_prefix   text   followed by a slot: the jobs that take up its room
-- ARGV[3] waiting_prefix   text   followed by a slot: the ticks that wait for room
-- ARGV[4] job_prefix       text   followed by a job id: RQ's hash
-- ARGV[5] limit            count  how many slots at most
-- ARGV[6] interval         ms     how soon to look again
--
-- Replies {now in ms, {slot, rev, state, how many of its runs have ended unseen, {job, …}, {tick that waits, …}}, …}
local waiting_slots, open = KEYS[1], KEYS[2]
local schedule_prefix, running_prefix, waiting_prefix, job_prefix, limit, interval = unpack(ARGV)

-- include instants
-- include now
-- include sane
-- include slots

local function in_line(key)  -- what makes no sense waits for nothing
  local ticks = {}
  for _, member in ipairs(kind_of(key) == 'zset' and redis.call('ZRANGE', key, 0, 99) or {}) do
    if to_ms(string.match(member, '^[%w_-]+ (%S+) %a+$') or '') then
      ticks[#ticks + 1] = member
    else
      redis.call('ZREM', key, member)
    end
  end
  return ticks
end

local found, looked = {now}, 0
if kind_of(waiting_slots) ~= 'zset' or kind_of(open) == 'string' then return found end
for _, slot in ipairs(redis.call('ZRANGEBYSCORE', waiting_slots, '-inf', now, 'LIMIT', 0, limit)) do
  local waiting, running, schedule = waiting_prefix .. slot, running_prefix .. slot, schedule_prefix .. slot
  local ticks = in_line(waiting)
  if kind_of(schedule) ~= 'hash' then redis.call('DEL', waiting) end
  if #ticks == 0 or kind_of(schedule) ~= 'hash' then
    redis.call('ZREM', waiting_slots, slot)
  else
    redis.call('ZADD', waiting_slots, now + interval, slot)
    if kind_of(running) == 'none' or kind_of(running) == 'zset' then
      local jobs, ended = in_slot(running)
      local rev, state = unpack(redis.call('HMGET', schedule, 'rev', 'state'))
      found[#found + 1] = {slot, rev or '', state or '', ended, jobs, ticks}
      looked = looked + #jobs
      if looked > 500 then break end  -- that Redis is not kept for long
    end
  end
end
return found
