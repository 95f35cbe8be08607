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

local function append_verdict(id, line, kept)  -- returns how many verdicts the ledger holds now
  local length, limit = append(id, line), tonumber(history_limit)
  local least = math.max(limit, length - 100)  -- after the limit was lowered, a hundred lines go at a time
  kept = math.min((tonumber(kept or '') or 0) + 1, length)
  while kept > limit and length > least do
    local oldest = redis.call('RPOP', runs_prefix .. id)
    length = length - 1
    if string.find(oldest, '^{"type":"enqueued"') or string.find(oldest, '^{"type":"skipped"') then kept = kept - 1 end
  end
  return math.min(kept, length)
end
