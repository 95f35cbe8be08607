-- A schedule's ledger (lines of JSON, newest first) and the outbox: both get the same line, in the same step.
local function quoted(text) return '"' .. string.gsub(text, '[%c"\\]', '?') .. '"' end

local function tell(id, type, tick, job, by, line)
  redis.call('XADD', events, 'MAXLEN', '~', events_limit, '*', 'type', type, 'schedule', id, 'tick', tick, 'job', job,
    'by', by, 'entry', line)
end

local function append(id, line)  -- verdicts are counted and trimmed; this bounds what is none
  local key, most = runs_prefix .. id, 4 * history_limit + 20
  local length = redis.call('LPUSH', key, line)
  if length > most then redis.call('LTRIM', key, 0, most - 1) end
  return math.min(length, most)
end

local function is_verdict(line)
  return string.find(line, '^{"type":"enqueued"') ~= nil or string.find(line, '^{"type":"skipped"') ~= nil
end

local function verdicts_in(id)  -- for when the count is lost; of a long ledger about half are verdicts
  local length, number = redis.call('LLEN', runs_prefix .. id), 0
  if length > 5000 then return math.floor(length / 2) end
  for _, line in ipairs(redis.call('LRANGE', runs_prefix .. id, 0, -1)) do number = number + (is_verdict(line) and 1 or 0) end
  return number
end

local function append_verdict(id, line, kept)  -- returns how many verdicts the ledger holds now
  kept = 1 + (kept and is_count(kept) and tonumber(kept) or verdicts_in(id))
  local length, limit = append(id, line), tonumber(history_limit)
  local least = math.max(limit, length - 100)  -- after the limit was lowered, a hundred lines go at a time
  kept = math.min(kept, length)
  while kept > limit and length > least do
    if is_verdict(redis.call('RPOP', runs_prefix .. id)) then kept = kept - 1 end
    length = length - 1
  end
  return math.min(kept, length)
end
