-- Counts by word in one field of a schedule's hash, as `misfire 3 overlap 1`: why ticks passed, how runs ended. They only
-- grow; what makes no sense there is dropped.
local function one_more(text, word, number)
  local before, parts = 0, {}
  for name, count in string.gmatch(text and #text <= 1000 and text or '', '([%l_]+) (%d+)') do
    if #count > 15 then break end
    if name == word then before = count else parts[#parts + 1] = name .. ' ' .. count end
  end
  if #word <= 40 and string.find(word, '^[%l_]+$') then parts[#parts + 1] = word .. ' ' .. string.format('%.0f', before + number) end
  return table.concat(parts, ' ')
end
