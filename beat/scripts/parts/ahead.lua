-- A score that says when to look again, or when something expires, lies at most so far ahead. After Redis' clock went back (or a
-- server took over whose clock is behind), older scores lie further ahead: whoever reads such an index corrects them.
local function bring_near(index, most, wait)  -- what lies over `most` ms ahead comes in `wait` ms; its members, a thousand at a time
  local far = redis.call('ZRANGEBYSCORE', index, string.format('(%.0f', now + most), '+inf', 'LIMIT', 0, 1000)
  local moves, score = {}, string.format('%.0f', now + wait)
  for n, member in ipairs(far) do moves[2 * n - 1], moves[2 * n] = score, member end
  if #moves > 0 then redis.call('ZADD', index, unpack(moves)) end
  return far
end
