#!lua
-- Says which definitions a live beat has registered: a page of them, kept as long as somebody renews it.
--
-- KEYS[1] announced      hash   id → rev
-- KEYS[2] announcements  zset   digest → when it lapses, in ms
-- KEYS[3] meta           hash   format
-- ARGV[1] digest         text   of all the definitions together
-- ARGV[2] ttl            ms     how long it lasts
-- ARGV[3] format         count  the format of the keys that this beat writes, noted if there is none yet
-- ARGV[4…] items, each of
-- ITEM[1] id   text  a schedule
-- ITEM[2] rev  text  its definition
--
-- Replies {code, words}
--   OK       it is announced
--   BADTYPE  words: the key that is not what it should be
local announced, announcements, meta = KEYS[1], KEYS[2], KEYS[3]
local digest, ttl, format = unpack(ARGV, 1, 3)

-- include instants
-- include now
-- include sane

for key, wanted in pairs({[announced] = 'hash', [announcements] = 'zset', [meta] = 'hash'}) do
  local kind = kind_of(key)
  if kind ~= 'none' and kind ~= wanted then return {'BADTYPE', key .. ' is a ' .. kind .. ', not a ' .. wanted} end
end
redis.call('HSETNX', meta, 'format', format)
if #ARGV > 3 then redis.call('HSET', announced, unpack(ARGV, 4)) end
redis.call('PEXPIRE', announced, ttl)
redis.call('ZREMRANGEBYSCORE', announcements, '-inf', now)
redis.call('ZADD', announcements, now + ttl, digest)
return {'OK', ''}
