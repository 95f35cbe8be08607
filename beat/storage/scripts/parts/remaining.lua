-- How long a lock lasts. Redis keeps the end of a key as an absolute time. So a lock lasts too long after Redis' clock went back, or
-- when a server took over whose clock is behind. A script that meets such a lock cuts it to the longest time that it may last.
local function remaining(key, most)  -- how many ms it still lasts, 0 in its last millisecond; and whether it was cut
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= tonumber(most) then return left, false end
  redis.call('PEXPIRE', key, most)  -- it lasts too long, or has no end: beat writes none like that
  return tonumber(most), true
end
