-- Instants as text (RFC 3339, UTC) and as milliseconds since the epoch; the calendar is Howard Hinnant's.
local function to_text(seconds, fraction)
  local days, rest = math.floor(seconds / 86400) + 719468, seconds % 86400
  local era = math.floor(days / 146097)
  local doe = days - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d%sZ', yoe + era * 400 + (month <= 2 and 1 or 0), month,
    doy - math.floor((153 * mp + 2) / 5) + 1, math.floor(rest / 3600), math.floor(rest / 60) % 60, rest % 60,
    fraction or '')
end

local function parsed(text)
  local y, mo, d, h, mi, s, f = string.match(text, '^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d)%.?(%d*)Z$')
  if not y then return nil end
  y, mo = tonumber(y), tonumber(mo)
  if mo <= 2 then y = y - 1 end
  local era = math.floor(y / 400)
  local year = y - era * 400
  local day = math.floor((153 * ((mo + 9) % 12) + 2) / 5) + d - 1
  local days = era * 146097 + year * 365 + math.floor(year / 4) - math.floor(year / 100) + day - 719468
  local seconds = ((days * 24 + h) * 60 + mi) * 60 + s
  if to_text(seconds) ~= string.sub(text, 1, 19) .. 'Z' then return nil end  -- the 31st of February
  return seconds * 1000 + math.floor(tonumber('0.' .. f .. '0') * 1000 + 0.5)
end

local instants = {}  -- a page names the same few instants again and again
local function to_ms(text)
  if not text then return nil end
  if instants[text] == nil then instants[text] = parsed(text) or false end
  return instants[text] or nil
end

local function due_text(tick, ms)  -- when a tick is due, which may be later than its own time
  if ms == to_ms(tick) then return tick end
  return to_text(math.floor(ms / 1000), ms % 1000 ~= 0 and string.format('.%03d', ms % 1000) or '')
end
