-- A schedule's ledger: lines of JSON, newest first.
local most_verdicts, most_lines = tonumber(history_limit), 4 * history_limit + 20

local function is_verdict(line)
  return string.find(line, '^{"type":"enqueued"') ~= nil or string.find(line, '^{"type":"skipped"') ~= nil
end

local function append(id, line)  -- verdicts are counted and trimmed; this bounds what is none. How many lines, verdicts lost
  local key, lost = runs_prefix .. id, 0
  local length = redis.pcall('LPUSH', key, line)
  if type(length) ~= 'number' then return nil end  -- it is no list, and stays as it was
  if length <= most_lines then return length, 0 end
  for _ = 1, math.min(length - most_lines, 100) do
    if is_verdict(redis.call('RPOP', key)) then lost = lost + 1 end
  end
  if length > most_lines + 100 then redis.call('LTRIM', key, 0, most_lines - 1) end  -- somebody lowered the limit
  return most_lines, lost
end

local function append_other(id, line, key)  -- a line that is no verdict; the schedule's hash knows how many of these are left
  local length, lost = append(id, line)
  local kept = length and lost > 0 and redis.call('HGET', key, 'kept')
  if kept and is_count(kept) then redis.call('HSET', key, 'kept', math.max(kept - lost, 0)) end
end

local countable = 5000  -- so many lines are read in a step
local function verdicts_in(id, length)  -- for when the count is lost; of what cannot be read now, about half are verdicts
  local number = 0
  if length > countable then return math.floor(length / 2) end
  countable = countable - length
  for _, line in ipairs(redis.call('LRANGE', runs_prefix .. id, 0, -1)) do number = number + (is_verdict(line) and 1 or 0) end
  return number
end

local function append_verdict(id, line, kept)  -- returns how many verdicts the ledger holds now; nothing if it is no list
  local length, lost = append(id, line)
  if not length then return nil end
  kept = kept and is_count(kept) and number_of(kept) + 1 - lost or verdicts_in(id, length)
  if kept <= most_verdicts and kept <= length then return kept end
  local shortest = math.max(most_verdicts, length - 100)  -- after the limit was lowered, a hundred lines go at a time
  kept = math.min(kept, length)
  while kept > most_verdicts and length > shortest do
    if is_verdict(redis.call('RPOP', runs_prefix .. id)) then kept = kept - 1 end
    length = length - 1
  end
  return math.min(kept, length)
end
