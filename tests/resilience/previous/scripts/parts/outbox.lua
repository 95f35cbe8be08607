-- The outbox: what the ledger gets is told to whoever listens, in the same step.
local trimmed = false
local function tell(id, type, line, ...)  -- with what the line does not say by these names
  if trimmed then
    redis.pcall('XADD', events, '*', 'type', type, 'schedule', id, 'entry', line, ...)
  else  -- once in a page is enough
    trimmed = true
    redis.pcall('XADD', events, 'MAXLEN', '~', events_limit, '*', 'type', type, 'schedule', id, 'entry', line, ...)
  end
end
