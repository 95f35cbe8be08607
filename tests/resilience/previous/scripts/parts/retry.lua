-- When to look again at what Redis rejects: at the next cycle, and then after waits that grow, because each is half as long as the
-- tick is late. No wait is longer than 20 s, than a quarter of misfire_after, or than half of what is left until a tick becomes a
-- misfire: so waiting turns no tick into one, and every scheduler computes the same without remembering anything.
local longest_wait, unknown_wait = 20000, 2000

local function misfire_limit_of(key)  -- in ms; that of the schedule, or of the setting
  local own = redis.pcall('HGET', key, 'misfire_after')
  return type(own) == 'string' and is_count(own) and own ~= '0' and number_of(own) or tonumber(misfire_limit)
end

local function retry_at(key, due, next_due)  -- the score; without a due time the wait does not grow
  local limit = misfire_limit_of(key)
  local wait = math.min(due and (now - due) / 2 or unknown_wait, limit / 4, longest_wait)
  local left = due and (due + limit > now and due or next_due)
  if left and left + limit > now then wait = math.min(wait, (left + limit - now) / 2) end
  local at = now + math.max(wait, tonumber(cycle))
  return math.floor(at - at % cycle + early)  -- on a cycle; claim hands it out so much earlier
end
