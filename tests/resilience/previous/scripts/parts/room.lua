-- Room for runs: a schedule's own, and its group's. A tick that finds none waits in line, or is skipped.
local limits, looked, in_a_while = {}, {}, digits_of(now + 900)
local lookable = 3000  -- so many runs in slots are looked at in a step
local function limits_of(group)  -- what becomes of a tick when the group is full, how many may run and wait; nothing where nobody says so
  if limits[group] == nil then
    local full, most, waits = string.match(redis.call('HGET', groups, group) or '', '^(%a+) (%d%d?%d?%d?) ?(%d?%d?%d?%d?)$')
    most, waits = tonumber(most), tonumber(waits) or 1000
    local is_limit = (full == 'wait' or full == 'skip') and most > 0 and most <= 1000 and waits > 0 and waits <= 1000
    limits[group] = is_limit and {full = full, most = most, waits = waits} or false
  end
  return limits[group]
end

local function no_size(key)  -- what keeps a slot or a line from being used, in words
  return not size_of(key) and key .. ' is a ' .. kind_of(key) .. ', not a zset'
end

local function no_kind(key, wanted)  -- the same, of what many items share, or a page may make: it makes it as it should be
  local kind = kind_once(key)
  return kind ~= 'none' and kind ~= wanted and key .. ' is a ' .. kind .. ', not a ' .. wanted
end

local function misplaced(id, group, told)  -- the keys of its slots; and its ledger, where that is told before anything else
  return no_size(running_prefix .. id) or no_size(waiting_prefix .. id) or no_kind(waiting_slots, 'zset') or told and no_kind(runs_prefix .. id, 'list')
    or group ~= '' and (no_size(running_prefix .. '@' .. group) or no_size(waiting_prefix .. '@' .. group) or no_kind(groups, 'hash'))
end

local function member_of(item)  -- a tick that waits, as it stands in line
  return item.id .. ' ' .. item.tick .. ' ' .. item.by .. (item.after ~= '' and ' ' .. item.after or '')
end

local function hall_of(item)  -- how many of its ticks have its own room already, and stand in the hall
  return size_of(waiting_prefix .. item.id) > 0 and in_hall(item.id, item.group) or 0
end

local function who_is_in(key)  -- after what this page has opened in it is there to be seen
  if has_new[key] then write_opened() end
  sizes[key] = nil
  local jobs, ended, alive = in_slot(key)
  lookable = lookable - #jobs
  return jobs, ended, alive
end

local function adopt(key, job)  -- what was fired before there was a slot
  if job and (is_new[job] or redis.call('ZSCORE', open, job)) and not (size_of(key) > 0 and redis.call('ZSCORE', key, job)) then
    take_room(key, job)
  end
end

local function look_at_slot(item, cleared)  -- how many are in its own, the newest of them, how many have ended unseen
  local id, room = item.id, item.room
  local key, standing = running_prefix .. id, hall_of(item)
  local hall = standing * item.jobs
  adopt(key, item.last_job)
  local count, waits = size_of(key) + hall, size_of(waiting_prefix .. id) - standing
  if count < room and waits == 0 then return 0, '', 0 end
  local jobs, ended, alive = who_is_in(key)
  if cleared == '' and (ended > 0 or waits > 0 and #jobs + hall < room) then
    if waits > 0 then redis.call('ZADD', waiting_slots, 0, id) end  -- to be looked at first
    return #jobs + hall, '', ended, true
  end
  if waits > 0 then redis.call('ZADD', waiting_slots, 'NX', since, id) end  -- somebody may have deleted it
  count = #jobs + hall - ended + alive  -- those that could not be closed have ended all the same
  return waits > 0 and math.max(count, room) or count, jobs[#jobs] or '', ended
end

local function fits_in(item)  -- whether its group has room; how many have ended unseen
  local slot, most = '@' .. item.group, limits_of(item.group).most
  local key = running_prefix .. slot
  if size_of(key) + item.jobs <= most then return true, 0 end
  if not looked[slot] then  -- once in a page: there may be many
    local _, ended, alive = who_is_in(key)
    looked[slot] = {ended = ended, alive = alive}
  end
  local count = size_of(key)  -- those that could not be closed have ended all the same
  return count == 0 or count - looked[slot].ended + looked[slot].alive + item.jobs <= most, looked[slot].ended
end

local function look_at_group(item, cleared)  -- whether it is full, the newest run in it, how many have ended unseen
  local slot = '@' .. item.group
  local key, waits = running_prefix .. slot, size_of(waiting_prefix .. slot)
  adopt(key, item.last_job)
  local mine = size_of(waiting_prefix .. item.id)
  if mine > 0 and mine > hall_of(item) then redis.call('ZADD', waiting_slots, 'NX', since, item.id) end  -- somebody took them out
  local fits, ended = fits_in(item)
  if waits == 0 and fits and ended == 0 then return false end
  if cleared == '' and (ended > 0 or waits > 0 and fits) then
    if waits > 0 then redis.call('ZADD', waiting_slots, 0, slot) end
    return true, '', ended, true
  end
  if waits > 0 then redis.call('ZADD', waiting_slots, 'NX', since, slot) end
  return waits > 0 or not fits, redis.call('ZRANGE', key, -1, -1)[1] or '', ended
end

local function enter_line(item, group)
  local tick = digits_of(to_ms(item.tick))  -- by their ticks, whatever the jitter
  join(waiting_prefix .. item.id, tick, member_of(item))
  if group then join(waiting_prefix .. '@' .. group, tick, member_of(item)) end
  local at_once = item.overlap == 'replace' and not group  -- somebody has to go; else it was full just now, and whoever closes a run says so
  redis.call('ZADD', waiting_slots, 'LT', at_once and since or in_a_while, group and '@' .. group or item.id)
end

local function leave_line(id, group, member)
  for _, slot in ipairs(group ~= '' and {id, '@' .. group} or {id}) do
    leave(waiting_prefix .. slot, member)
    if size_of(waiting_prefix .. slot) == 0 then redis.call('ZREM', waiting_slots, slot) end
  end
end

local function waits_now(item, key, newest, group)  -- in ledger and outbox
  local line = '{"type":"waiting","tick":"' .. item.tick .. '","job":' .. quoted(item.job) .. ',"behind":' .. quoted(newest)
    .. (group and ',"group":' .. quoted(group) or '') .. signed
  append_other(item.id, line, key)
  tell(item.id, 'waiting', line, 'tick', item.tick, 'job', item.job, 'by', token)
  enter_line(item, group)
end

local function stand_in_line(item, key, newest, tally, group)  -- no room, of its own or in the group
  local waiting, most, stand = waiting_prefix .. item.id, item.waits, 0
  local policy = group and limits_of(group).full or item.overlap
  if policy ~= 'skip' and no_kind(runs_prefix .. item.id, 'list') then return no_ledger(item.id, key) end
  if group then
    most, stand = limits_of(group).waits, size_of(waiting_prefix .. '@' .. group)
  else
    for _, member in ipairs(policy == 'replace' and redis.call('ZRANGE', waiting, 0, -1) or {}) do  -- the newest wins
      local older = string.match(member, '^%S+ (%S+)')
      if older then skipped(item.id, older, older, 1, 'replaced', item.job, tally) end  -- else it is no tick
      leave_line(item.id, item.group, member)
    end
    stand = size_of(waiting) - hall_of(item)
  end
  if policy == 'skip' or stand >= most then
    local reason = group and 'group' or 'overlap'
    if not skipped(item.id, item.tick, item.tick, 1, reason, newest, tally) then return no_ledger(item.id, key) end
    move(item.id, key, item.next, number_of(item.next_due), item.error, 'last_skip', item.tick, counts_of(tally))
    return 'SKIPPED', reason
  end
  if tally.has_grown then redis.call('HSET', key, counts_of(tally)) end  -- before another line pushes a verdict out
  waits_now(item, key, newest, group)
  local next = finishes(item.id, item.run_count, item.asked, item.max_runs) and '' or item.next
  move(item.id, key, next, number_of(item.next_due), item.error, 'last_skip', item.tick)
  return 'WAITS', newest
end

local function passes_by(item, key, reason, tally, behind)  -- a tick that waited, and will not become a job
  if not skipped(item.id, item.tick, item.tick, 1, reason, behind or '', tally, item.why, item.after) then return no_ledger(item.id, key) end
  leave_line(item.id, item.group, member_of(item))
  redis.call('HSET', key, counts_of(tally))
  return 'SKIPPED', reason
end

local function is_in_line(item)  -- somebody has lost next_run: the tick was decided, as far as it can be
  local line, member = waiting_prefix .. item.id, item.id .. ' ' .. item.tick .. ' '
  return size_of(line) > 0 and (redis.call('ZSCORE', line, member .. 'scheduler') or redis.call('ZSCORE', line, member .. 'catchup'))
end

local function not_in_group(item, key, tally)  -- why a tick that has its own room is not let in: a code, and words
  local line, most = waiting_prefix .. '@' .. item.group, limits_of(item.group)
  local stands = redis.call('ZSCORE', line, member_of(item))
  local others = not stands and size_of(line) or 0
  if others == 0 and fits_in(item) then return end
  local newest = redis.call('ZRANGE', running_prefix .. '@' .. item.group, -1, -1)[1] or ''
  if stands then return 'FULL', newest end
  if most.full == 'skip' or others >= most.waits then return passes_by(item, key, 'group', tally, newest) end
  if item.after ~= '' then waits_now(item, key, newest, item.group) else enter_line(item, item.group) end
  return 'FULL', newest
end

local function not_admitted(item, key, state, now_rev, tally)  -- why a tick that waited is not let in: a code, and words
  if not redis.call('ZSCORE', waiting_prefix .. item.id, member_of(item)) then return 'STALE', item.last_job or '' end
  if now_rev ~= item.rev then return 'CHANGED', '' end
  if item.kind == 'pass' and not holds(item.expects) then return 'CHANGED', '' end
  if item.kind == 'pass' then return passes_by(item, key, item.reason, tally) end
  if state ~= 'active' and state ~= 'finished' then return passes_by(item, key, state or 'broken', tally) end
  if is_enough(item.run_count, item.asked, item.max_runs) then return passes_by(item, key, 'finished', tally) end
  local has_room = item.group ~= '' and redis.call('ZSCORE', waiting_prefix .. '@' .. item.group, member_of(item))
  if item.room and not has_room and size_of(running_prefix .. item.id) + hall_of(item) * item.jobs >= item.room then return 'FULL', '' end
  if item.group ~= '' then return not_in_group(item, key, tally) end
end
