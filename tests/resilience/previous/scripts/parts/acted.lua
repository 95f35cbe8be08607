-- A line for what an operator did, or for what happened to the schedule by itself: in the ledger, and for whoever listens.
local function acted(id, key, type, tick, untl, reason, by)
  local line = '{"type":"' .. type .. '"' .. (tick ~= '' and ',"tick":' .. quoted(tick) or '')
    .. (untl ~= '' and ',"until":' .. quoted(untl) or '') .. (reason ~= '' and ',"reason":' .. quoted(reason) or '')
    .. ',"at":"' .. now_text .. '","beat":' .. quoted(by) .. '}'
  append_other(id, line, key)
  tell(id, type, line, 'tick', tick, 'job', '', 'by', by)
end
