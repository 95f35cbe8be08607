-- When to look again at what Redis rejects: at the next cycle, and then after waits that grow, because each is half as long as the
-- tick is late. No wait is longer than a quarter of misfire_after, or than half of what is left until a tick becomes a misfire:
-- so waiting turns no tick into one, and every scheduler computes the same without remembering anything.
local units = {w = 604800000, d = 86400000, h = 3600000, m = 60000, s = 1000, ms = 1}
local longest_wait, unknown_wait = 20000, 2000

local function misfire_limit_of(key)  -- in ms; that of the schedule, or of the setting
  local definition, limit = redis.pcall('HGET', key, 'definition'), 0
  local span = type(definition) == 'string' and string.match(definition, '.*"misfire_after": ?"(%w+)"')
  for number, unit in string.gmatch(span or '', '(%d+)(%a+)') do limit = limit + tonumber(number) * (units[unit] or 0) end
  return limit > 0 and limit or tonumber(misfire_limit)
end

local function retry_at(key, due, next_due)  -- the score; without a due time the wait does not grow
  local limit = misfire_limit_of(key)
  local wait = math.min(due and (now - due) / 2 or unknown_wait, limit / 4, longest_wait)
  local left = due and (due + limit > now and due or next_due)
  if left and left + limit > now then wait = math.min(wait, (left + limit - now) / 2) end
  local at = now + math.max(wait, tonumber(cycle))
  return math.floor(at - at % cycle + early)  -- on a cycle; claim hands it out so much earlier
end
