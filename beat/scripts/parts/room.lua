-- Room for runs: a schedule's own, and its group's. A tick that finds none waits in line, or is skipped.
local limits, looked = {}, {}
local function limits_of(group)  -- what becomes of a tick when the group is full, how many may run and wait; nothing where nobody says so
  if limits[group] == nil then
    local full, most, waits = string.match(redis.call('HGET', groups, group) or '', '^(%a+) (%d%d?%d?%d?) ?(%d?%d?%d?%d?)$')
    most, waits = tonumber(most), tonumber(waits) or 1000
    local is_limit = (full == 'wait' or full == 'skip') and most > 0 and most <= 1000 and waits > 0 and waits <= 1000
    limits[group] = is_limit and {full = full, most = most, waits = waits} or false
  end
  return limits[group]
end

local function misplaced(id, group)  -- the keys of its slots, and its ledger
  local wanted_of = {[running_prefix .. id] = 'zset', [waiting_prefix .. id] = 'zset', [waiting_slots] = 'zset', [runs_prefix .. id] = 'list'}
  if group ~= '' then
    wanted_of[running_prefix .. '@' .. group], wanted_of[waiting_prefix .. '@' .. group], wanted_of[groups] = 'zset', 'zset', 'hash'
  end
  for key, wanted in pairs(wanted_of) do
    local kind = kind_once(key)  -- the page may make what was none, and makes it as it should be
    if kind ~= 'none' and kind ~= wanted then return key .. ' is a ' .. kind .. ', not a ' .. wanted end
  end
end

local function member_of(item)  -- a tick that waits, as it stands in line
  return item.id .. ' ' .. item.tick .. ' ' .. item.by .. (item.after ~= '' and ' ' .. item.after or '')
end

local function look_at_slot(item, cleared, last_job)  -- how many are in its own, the newest of them, how many have ended unseen
  local id, room = item.id, item.room
  local key, standing = running_prefix .. id, in_hall(id, item.group)
  local hall = standing * item.jobs
  if last_job and redis.call('ZSCORE', open, last_job) and not redis.call('ZSCORE', key, last_job) then
    redis.call('ZADD', key, now, last_job)  -- it was fired before there was a slot
  end
  local count, waits = redis.call('ZCARD', key) + hall, redis.call('ZCARD', waiting_prefix .. id) - standing
  if count < room and waits == 0 then return 0, '', 0 end
  local jobs, ended, alive = in_slot(key)
  if cleared == '' and (ended > 0 or waits > 0 and #jobs + hall < room) then
    if waits > 0 then redis.call('ZADD', waiting_slots, 0, id) end  -- to be looked at first
    return #jobs + hall, '', ended, true
  end
  if waits > 0 then redis.call('ZADD', waiting_slots, 'NX', now, id) end  -- somebody may have deleted it
  count = #jobs + hall - ended + alive  -- those that could not be closed have ended all the same
  return waits > 0 and math.max(count, room) or count, jobs[#jobs] or '', ended
end

local function fits_in(item)  -- whether its group has room; how many have ended unseen
  local slot, most = '@' .. item.group, limits_of(item.group).most
  local key = running_prefix .. slot
  if redis.call('ZCARD', key) + item.jobs <= most then return true, 0 end
  if not looked[slot] then  -- once in a page: there may be many
    local _, ended, alive = in_slot(key)
    looked[slot] = {ended = ended, alive = alive}
  end
  local count = redis.call('ZCARD', key)  -- those that could not be closed have ended all the same
  return count == 0 or count - looked[slot].ended + looked[slot].alive + item.jobs <= most, looked[slot].ended
end

local function look_at_group(item, cleared, last_job)  -- whether it is full, the newest run in it, how many have ended unseen
  local slot = '@' .. item.group
  local key, waits = running_prefix .. slot, redis.call('ZCARD', waiting_prefix .. slot)
  if last_job and redis.call('ZSCORE', open, last_job) and not redis.call('ZSCORE', key, last_job) then
    redis.call('ZADD', key, now, last_job)  -- it was fired before there was a group
  end
  local mine = redis.call('ZCARD', waiting_prefix .. item.id)
  if mine > 0 and mine > in_hall(item.id, item.group) then redis.call('ZADD', waiting_slots, 'NX', now, item.id) end  -- somebody took them out
  local fits, ended = fits_in(item)
  if waits == 0 and fits and ended == 0 then return false end
  if cleared == '' and (ended > 0 or waits > 0 and fits) then
    if waits > 0 then redis.call('ZADD', waiting_slots, 0, slot) end
    return true, '', ended, true
  end
  if waits > 0 then redis.call('ZADD', waiting_slots, 'NX', now, slot) end
  return waits > 0 or not fits, redis.call('ZRANGE', key, -1, -1)[1] or '', ended
end

local function enter_line(item, group)
  redis.call('ZADD', waiting_prefix .. item.id, to_ms(item.tick), member_of(item))  -- by their ticks, whatever the jitter
  if not group then
    redis.call('ZADD', waiting_slots, now, item.id)
    return
  end
  redis.call('ZADD', waiting_prefix .. '@' .. group, to_ms(item.tick), member_of(item))
  redis.call('ZADD', waiting_slots, now, '@' .. group)
end

local function leave_line(id, group, member)
  for _, slot in ipairs(group ~= '' and {id, '@' .. group} or {id}) do
    redis.call('ZREM', waiting_prefix .. slot, member)
    if redis.call('EXISTS', waiting_prefix .. slot) == 0 then redis.call('ZREM', waiting_slots, slot) end
  end
end

local function waits_now(item, key, newest, group)  -- in ledger and outbox
  local line = '{"type":"waiting","tick":"' .. item.tick .. '","job":' .. quoted(item.job) .. ',"behind":' .. quoted(newest)
    .. (group and ',"group":' .. quoted(group) or '') .. signed
  append_other(item.id, line, key)
  tell(item.id, 'waiting', line, 'tick', item.tick, 'job', item.job, 'by', token)
  enter_line(item, group)
end

local function stand_in_line(item, key, newest, skip_count, kept, run_count, group)  -- no room, of its own or in the group
  local waiting, most, stand = waiting_prefix .. item.id, item.waits, 0
  local policy = group and limits_of(group).full or item.overlap
  if group then
    most, stand = limits_of(group).waits, redis.call('ZCARD', waiting_prefix .. '@' .. group)
  else
    for _, member in ipairs(policy == 'replace' and redis.call('ZRANGE', waiting, 0, -1) or {}) do  -- the newest wins
      local older = string.match(member, '^%S+ (%S+)')
      skip_count, kept = skipped(item.id, older, older, 1, 'replaced', item.job, skip_count, kept)
      leave_line(item.id, item.group, member)
    end
    stand = redis.call('ZCARD', waiting) - in_hall(item.id, item.group)
  end
  if policy == 'skip' or stand >= most then
    local reason = group and 'group' or 'overlap'
    skip_count, kept = skipped(item.id, item.tick, item.tick, 1, reason, newest, skip_count, kept)
    move(item.id, key, item.next, number_of(item.next_due), item.error, 'skip_count', skip_count, 'kept', kept, 'last_skip', item.tick)
    return 'SKIPPED', reason
  end
  waits_now(item, key, newest, group)
  local next = finishes(item.id, key, number_of(run_count or '0'), item.max_runs) and '' or item.next
  move(item.id, key, next, number_of(item.next_due), item.error, 'skip_count', skip_count or '0', 'last_skip', item.tick,
    unpack(kept and {'kept', kept} or {}))
  return 'WAITS', newest
end

local function passes_by(item, key, reason, skip_count, kept, behind)  -- a tick that waited, and will not become a job
  skip_count, kept = skipped(item.id, item.tick, item.tick, 1, reason, behind or '', skip_count, kept, item.why, item.after)
  leave_line(item.id, item.group, member_of(item))
  redis.call('HSET', key, 'skip_count', skip_count, 'kept', kept)
  return 'SKIPPED', reason
end

local function is_in_line(item)  -- somebody has lost next_run: the tick was decided, as far as it can be
  local member = item.id .. ' ' .. item.tick .. ' '
  return redis.call('ZSCORE', waiting_prefix .. item.id, member .. 'scheduler') or redis.call('ZSCORE', waiting_prefix .. item.id, member .. 'catchup')
end

local function not_in_group(item, key, skip_count, kept)  -- why a tick that has its own room is not let in: a code, and words
  local line, most = waiting_prefix .. '@' .. item.group, limits_of(item.group)
  local stands = redis.call('ZSCORE', line, member_of(item))
  local others = not stands and redis.call('ZCARD', line) or 0
  if others == 0 and fits_in(item) then return end
  local newest = redis.call('ZRANGE', running_prefix .. '@' .. item.group, -1, -1)[1] or ''
  if stands then return 'FULL', newest end
  if most.full == 'skip' or others >= most.waits then return passes_by(item, key, 'group', skip_count, kept, newest) end
  if item.after ~= '' then waits_now(item, key, newest, item.group) else enter_line(item, item.group) end
  return 'FULL', newest
end

local function not_admitted(item, key, state, now_rev, skip_count, kept)  -- why a tick that waited is not let in: a code, and words
  if not redis.call('ZSCORE', waiting_prefix .. item.id, member_of(item)) then return 'STALE', redis.call('HGET', key, 'last_job') or '' end
  if now_rev ~= item.rev then return 'CHANGED', '' end
  if item.kind == 'pass' and not holds(item.expects) then return 'CHANGED', '' end
  if item.kind == 'pass' then return passes_by(item, key, item.reason, skip_count, kept) end
  if state ~= 'active' and state ~= 'finished' then return passes_by(item, key, state or 'broken', skip_count, kept) end
  if is_enough(key, item.run_count, item.max_runs) then return passes_by(item, key, 'finished', skip_count, kept) end
  local has_room = item.group ~= '' and redis.call('ZSCORE', waiting_prefix .. '@' .. item.group, member_of(item))
  if item.room and not has_room and redis.call('ZCARD', running_prefix .. item.id) + in_hall(item.id, item.group) * item.jobs >= item.room then
    return 'FULL', ''
  end
  if item.group ~= '' then return not_in_group(item, key, skip_count, kept) end
end
