#!lua
-- Hands out the next message that a channel has yet to take, and hides it from others while it is being sent. Messages of
-- one incident come in their order.
--
-- KEYS[1] deliveries         zset  message → when to try, in ms
-- KEYS[2] messages           hash  message → what it says, as JSON
-- ARGV[1] lease              ms    for so long nobody else is handed it
-- ARGV[2] furthest_delivery  ms    how far ahead a message may stand; what stands further is handed out after the lease
--
-- Replies {code, words, …}
--   OK       {its key, what it says}: to be sent
--   NONE     {in how many ms there may be one}: nothing is due
--   BADTYPE  {in words}: a key is not what it should be
local deliveries, messages = KEYS[1], KEYS[2]
local lease, furthest_delivery = tonumber(ARGV[1]), tonumber(ARGV[2])

-- include instants
-- include now
-- include sane
-- include ahead

local page, most_numbers = 100, 10

local function is_first(incident, number)
  for n = 1, number - 1 do
    if redis.call('ZSCORE', deliveries, incident .. ' ' .. n) then return false end
  end
  return true
end

for key, kind in pairs({[deliveries] = 'zset', [messages] = 'hash'}) do
  local found = kind_of(key)
  if found ~= 'none' and found ~= kind then return {'BADTYPE', key .. ' is a ' .. found .. ', not a ' .. kind} end
end
bring_near(deliveries, math.max(lease, furthest_delivery), lease)  -- another scheduler may be sending it
for _, key in ipairs(redis.call('ZRANGEBYSCORE', deliveries, '-inf', now, 'LIMIT', 0, page)) do
  local incident, number = string.match(key, '^(%S+) (%d%d?)$')
  local text = incident and tonumber(number) <= most_numbers and redis.call('HGET', messages, key)
  if not text then
    redis.call('ZREM', deliveries, key)  -- it is none of ours
    redis.call('HDEL', messages, key)
  elseif is_first(incident, tonumber(number)) then
    redis.call('ZADD', deliveries, now + lease, key)
    return {'OK', key, text}
  end
end
local head = redis.call('ZRANGE', deliveries, 0, 0)[1]
local soonest = head and redis.call('ZSCORE', deliveries, head)
return {'NONE', soonest and string.format('%.0f', math.max(soonest - now, 100)) or '60000'}
