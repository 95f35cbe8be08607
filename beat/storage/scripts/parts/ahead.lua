-- A score that says when to look again, or when something expires, lies a certain time ahead at most. It lies further ahead after Redis'
-- clock went back, or when a server took over whose clock is behind. The script that reads the index corrects such scores.
local function bring_near(index, most, wait)  -- moves members that lie over `most` ms ahead to `wait` ms; returns them, a thousand at most
  local far = redis.call('ZRANGEBYSCORE', index, string.format('(%.0f', now + most), '+inf', 'LIMIT', 0, 1000)
  local moves, score = {}, string.format('%.0f', now + wait)
  for n, member in ipairs(far) do moves[2 * n - 1], moves[2 * n] = score, member end
  if #moves > 0 then redis.call('ZADD', index, unpack(moves)) end
  return far
end
