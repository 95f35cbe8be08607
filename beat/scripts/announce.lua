#!lua
-- Says which definitions a live beat has registered: a page of them, kept as long as somebody renews it; and which
-- functions its application lets be scheduled from data.
--
-- KEYS[1] announced      hash   id → rev, rule, zone, and file and line, with a tab between
-- KEYS[2] announcements  zset   digest → when it lapses, in ms
-- KEYS[3] meta           hash   format
-- KEYS[4] functions      zset   path → when it was last announced, in ms
-- ARGV[1] digest         text   of all the definitions together
-- ARGV[2] ttl            ms     how long it lasts
-- ARGV[3] format         count  the format of the keys that this beat writes, noted if there is none yet
-- ARGV[4] kept           ms     how long a function stays that nobody announces any more
-- ARGV[5…] items, each of
-- ITEM[1] id        text  a schedule, or the path of a function
-- ITEM[2] declared  text  how the code declares it, as above; nothing for a function
--
-- Replies {code, words}
--   OK       it is announced
--   BADTYPE  words: the key that is not what it should be
local announced, announcements, meta, functions = unpack(KEYS)
local digest, ttl, format, kept = unpack(ARGV, 1, 4)

-- include instants
-- include now
-- include sane

for key, wanted in pairs({[announced] = 'hash', [announcements] = 'zset', [meta] = 'hash', [functions] = 'zset'}) do
  local kind = kind_of(key)
  if kind ~= 'none' and kind ~= wanted then return {'BADTYPE', key .. ' is a ' .. kind .. ', not a ' .. wanted} end
end
redis.call('HSETNX', meta, 'format', format)
local revs, paths = {}, {}
for i = 5, #ARGV, 2 do
  if ARGV[i + 1] ~= '' then
    revs[#revs + 1], revs[#revs + 2] = ARGV[i], ARGV[i + 1]
  else
    paths[#paths + 1], paths[#paths + 2] = now, ARGV[i]
  end
end
if #revs > 0 then redis.call('HSET', announced, unpack(revs)) end
if #paths > 0 then redis.call('ZADD', functions, unpack(paths)) end
redis.call('ZREMRANGEBYSCORE', functions, '-inf', now - kept)
redis.call('PEXPIRE', announced, ttl)
redis.call('ZREMRANGEBYSCORE', announcements, '-inf', now)
redis.call('ZADD', announcements, now + ttl, digest)
return {'OK', ''}
