-- The ticks of followers: each follower of a success has one in its waiting list, once for this success.
local longest = 1000  -- so many ticks may wait in the list of one follower

local function count_of(value) return value and is_count(value) and tonumber(value) or 0 end

local function passes_by(id, tick, job, reason, why)  -- a tick that would have followed that job
  local key = schedule_prefix .. id
  local total, kept, skips = unpack(redis.call('HMGET', key, 'skip_count', 'kept', 'skips'))
  total = string.format('%.0f', count_of(total) + 1)
  local line = '{"type":"skipped","tick":"' .. tick .. '","last":"' .. tick .. '","count":1,"reason":"' .. reason .. '","why":' .. quoted(why)
    .. ',"after":' .. quoted(job) .. ',"n":' .. total .. ',"at":"' .. now_text .. '","beat":' .. quoted(token) .. '}'
  kept = append_verdict(id, line, kept)
  if not kept then return end
  redis.call('HSET', key, 'skip_count', total, 'kept', kept, 'skips', one_more(skips, reason, 1))
  tell(id, 'skipped', line)
end

local function hand_on(id, each, tick, job)  -- to one follower of a schedule; whether it is one
  local line = waiting_prefix .. each
  local kind = kind_of(line)
  if kind_of(schedule_prefix .. each) ~= 'hash' or redis.call('HGET', schedule_prefix .. each, 'follows') ~= id then return false end
  if kind ~= 'none' and kind ~= 'zset' then
    passes_by(each, tick, job, 'broken', line .. ' is a ' .. kind)
  elseif redis.call('ZCARD', line) >= longest then
    passes_by(each, tick, job, 'overlap', longest .. ' wait already')
  else
    redis.call('ZADD', line, digits_of(to_ms(tick)), each .. ' ' .. tick .. ' follows ' .. job)
    redis.call('ZADD', waiting_slots, now, each)
  end
  return true
end
