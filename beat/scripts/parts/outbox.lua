-- The outbox: what the ledger gets is told to whoever listens, in the same step.
local trimmed = false
local function tell(id, type, tick, job, by, line)
  if trimmed then
    redis.pcall('XADD', events, '*', 'type', type, 'schedule', id, 'tick', tick, 'job', job, 'by', by, 'entry', line)
  else  -- once in a page is enough
    trimmed = true
    redis.pcall('XADD', events, 'MAXLEN', '~', events_limit, '*', 'type', type, 'schedule', id, 'tick', tick, 'job', job,
      'by', by, 'entry', line)
  end
end
