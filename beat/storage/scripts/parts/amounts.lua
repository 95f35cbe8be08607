-- The amounts of the metrics: what is no number there counts as none. Seconds have fractions, all others are whole.
local function amount(value) return value and #value <= 24 and string.find(value, '^%d+%.?%d*$') and tonumber(value) or 0 end

local function grow(key, by)  -- by: how much for each field
  for field, more in pairs(by) do
    redis.call('HSET', key, field, string.format(string.find(field, ':sum$') and '%.6f' or '%.0f', amount(redis.call('HGET', key, field)) + more))
  end
end
