#!lua
-- Adds what one beat has counted to what all have: of each total that part which it has not told before, so that a lost reply
-- counts nothing twice.
--
-- KEYS[1] metrics  hash   the counts of all beats
-- KEYS[2] told     hash   what this beat has told before
-- ARGV[1] ttl      ms     how long that is remembered
-- ARGV[2…] items, each of
-- ITEM[1] field  text   what is counted
-- ITEM[2] total  text   how much this beat has counted since it began
-- ITEM[3] known  text   how much of that it knows to be told: what it told is forgotten after a while
--
-- Replies {code, words}
--   OK       done
--   BADTYPE  words: the key that is not what it should be
local metrics, told = unpack(KEYS)
local ttl = ARGV[1]

-- include instants
-- include sane
-- include amounts
-- include allowed
-- include acl

local first, width = 2, 3
for _, key in ipairs(KEYS) do
  local kind = kind_of(key)
  if kind ~= 'none' and kind ~= 'hash' then return {'BADTYPE', key .. ' is a ' .. kind .. ', not a hash'} end
end
local more = {}
for i = first, #ARGV, width do
  local field, total, known = unpack(ARGV, i, i + width - 1)
  local before = math.max(amount(redis.call('HGET', told, field)), amount(known))
  if amount(total) > before then
    more[field] = amount(total) - before
    redis.call('HSET', told, field, total)
  end
end
grow(metrics, more)
redis.call('PEXPIRE', told, ttl)
return {'OK', ''}
