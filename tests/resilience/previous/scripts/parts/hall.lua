-- The hall: ticks that have their schedule's own room, and wait for their group's, stand in both lines.
local function in_hall(id, group)  -- how many of its ticks do
  local mine, number = group ~= '' and redis.call('ZRANGE', waiting_prefix .. id, 0, 999) or {}, 0
  for _, score in ipairs(#mine > 0 and redis.call('ZMSCORE', waiting_prefix .. '@' .. group, unpack(mine)) or {}) do
    number = number + (score and 1 or 0)
  end
  return number
end
