#!lua
-- Hands out the slots for which ticks wait, those first that were looked at longest ago, and takes out what holds room
-- without being a run. A slot is a schedule's own, or that of a group: then it begins with @.
--
-- KEYS[1] waiting_slots    zset   slot → when to look next, in ms
-- KEYS[2] open             zset   job id → when to look next, in ms: runs whose outcome is not known
-- KEYS[3] groups           hash   group → skip or wait when it is full, how many may run, how many may wait
-- KEYS[4] fanout           zset   the successes that are still to be handed on to followers
-- ARGV[1] schedule_prefix  text   followed by an id: the hash of that schedule
-- ARGV[2] running_prefix   text   followed by a slot: the jobs that take up its room
-- ARGV[3] waiting_prefix   text   followed by a slot: the ticks that wait for room
-- ARGV[4] job_prefix       text   followed by a job id: RQ's hash
-- ARGV[5] limit            count  how many slots at most
-- ARGV[6] interval         ms     how soon to look again
-- ARGV[7] furthest_waiting ms     how far ahead a slot may stand; what stands further is looked at now
--
-- Replies {now in ms, how many were looked at, how many successes are to be handed on, {slot, rev, state, how many of its runs have ended unseen, {job, …}, {tick that waits, …}, hall}, …}, where
-- those ticks are not named that wait for the group's room, and hall is how many these are. Of a group: {slot, what it may
-- have, '', how many have ended, {job, …}, {tick, …}, {rev of its schedule, …}}
local waiting_slots, open, groups, fanout = unpack(KEYS)
local schedule_prefix, running_prefix, waiting_prefix, job_prefix, limit, interval, furthest_waiting = unpack(ARGV)

-- include instants
-- include now
-- include sane
-- include slots
-- include ahead

local function in_line(key)  -- what makes no sense waits for nothing
  local ticks = {}
  for _, member in ipairs(kind_of(key) == 'zset' and redis.call('ZRANGE', key, 0, 99) or {}) do
    if to_ms(string.match(member, '^[%w_-]+ (%S+) %a+ ?[%w_-]*$') or '') then
      ticks[#ticks + 1] = member
    else
      redis.call('ZREM', key, member)
    end
  end
  return ticks
end

local function own(slot, rev, state, group)  -- a schedule's: those who wait for the group have its room already
  local ticks, waits, hall = in_line(waiting_prefix .. slot), {}, 0
  local line = waiting_prefix .. '@' .. (group or '')
  local scores = #ticks > 0 and kind_of(line) == 'zset' and redis.call('ZMSCORE', line, unpack(ticks)) or {}
  for n, tick in ipairs(ticks) do
    if scores[n] then hall = hall + 1 else waits[#waits + 1] = tick end
  end
  if hall > 0 then redis.call('ZADD', waiting_slots, 'NX', now, '@' .. group) end  -- somebody may have deleted it
  if #waits == 0 then redis.call('ZREM', waiting_slots, slot) end  -- the group's line knows them
  local jobs, ended = in_slot(running_prefix .. slot)
  return {slot, rev or '', state or '', ended, jobs, waits, hall}
end

local function is_held(id) return redis.call('HEXISTS', schedule_prefix .. id, 'unannounced_at') == 1 end  -- perhaps its code is gone

local function shared(slot)  -- a group's: who waits for it waits in the line of the schedule, too
  local key, ticks, revs = waiting_prefix .. slot, {}, {}
  for _, member in ipairs(in_line(key)) do
    local id = string.match(member, '^%S+')
    local waits = kind_of(waiting_prefix .. id) == 'zset' and redis.call('ZSCORE', waiting_prefix .. id, member)
    local rev, group = unpack(waits and kind_of(schedule_prefix .. id) == 'hash' and redis.call('HMGET', schedule_prefix .. id, 'rev', 'group') or {})
    if rev and '@' .. (group or '') == slot and not is_held(id) then
      ticks[#ticks + 1], revs[#revs + 1] = member, rev
    elseif waits and not rev then  -- there is no such schedule
      redis.call('DEL', waiting_prefix .. id)
      redis.call('ZREM', key, member)
    else  -- it is gone or held, or its schedule has left the group: its own line knows where it is to go
      redis.call('ZREM', key, member)
      if rev then redis.call('ZADD', waiting_slots, 'NX', now, id) end
    end
  end
  local jobs, ended = in_slot(running_prefix .. slot)
  local limits = kind_of(groups) == 'hash' and redis.call('HGET', groups, string.sub(slot, 2)) or ''
  return {slot, limits, '', ended, jobs, ticks, revs}
end

local function is_zset(key) return kind_of(key) == 'none' or kind_of(key) == 'zset' end

local pending = redis.pcall('ZCARD', fanout)
local found, looked = {now, 0, type(pending) == 'number' and pending or 0}, 0
if kind_of(waiting_slots) ~= 'zset' or kind_of(open) == 'string' then return found end
bring_near(waiting_slots, math.max(furthest_waiting, interval), 0)
for _, slot in ipairs(redis.call('ZRANGEBYSCORE', waiting_slots, '-inf', now, 'LIMIT', 0, limit)) do
  local is_group = string.sub(slot, 1, 1) == '@'
  found[2] = found[2] + 1
  local is_there = is_group or kind_of(schedule_prefix .. slot) == 'hash'
  local rev, state, group, held = unpack(is_there and not is_group and redis.call('HMGET', schedule_prefix .. slot, 'rev', 'state', 'group',
    'unannounced_at') or {})
  if not is_there then redis.call('DEL', waiting_prefix .. slot) end
  if kind_of(waiting_prefix .. slot) ~= 'zset' then
    redis.call('ZREM', waiting_slots, slot)
  else
    redis.call('ZADD', waiting_slots, now + interval, slot)
    if is_zset(running_prefix .. slot) and not held then
      local told = is_group and shared(slot) or own(slot, rev, state, group)
      if kind_of(waiting_prefix .. slot) == 'none' then redis.call('ZREM', waiting_slots, slot) end
      if #told[6] > 0 then found[#found + 1] = told end
      looked = looked + #told[5]
      if looked > 500 then break end  -- that Redis is not kept for long
    end
  end
end
return found
