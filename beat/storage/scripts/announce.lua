#!lua
-- Says which definitions a live beat has registered: a page of them, kept as long as somebody renews it; and which
-- functions its application lets be scheduled from data, and with which arguments.
--
-- KEYS[1] announced      hash   id → rev, rule, zone, and file and line, with a tab between
-- KEYS[2] announcements  zset   digest → when it lapses, in ms
-- KEYS[3] meta           hash   format
-- KEYS[4] functions      zset   path → when it was last announced, in ms
-- KEYS[5] signatures     hash   path → the parameters of that function in this application, as JSON
-- ARGV[1] digest         text   of all the definitions together; nothing if there is none
-- ARGV[2] ttl            ms     how long it lasts
-- ARGV[3] format         count  the format of the keys that this beat writes, noted if there is none yet
-- ARGV[4] kept           ms     how long a function stays that nobody announces any more
-- ARGV[5…] items, each of
-- ITEM[1] id         text  a schedule, or the path of a function
-- ITEM[2] declared   text  how the code declares the schedule, as above; nothing for a function
-- ITEM[3] signature  text  the parameters of a function, as JSON; nothing where they are not known, and for a schedule
--
-- Replies {code, words}
--   OK       it is announced
--   BADTYPE  words: the key that is not what it should be
local announced, announcements, meta, functions, signatures = unpack(KEYS)
local digest, ttl, format, kept = unpack(ARGV, 1, 4)

-- include instants
-- include now
-- include sane

local wanted_kinds = {[announced] = 'hash', [announcements] = 'zset', [meta] = 'hash', [functions] = 'zset', [signatures] = 'hash'}
for key, wanted in pairs(wanted_kinds) do
  local kind = kind_of(key)
  if kind ~= 'none' and kind ~= wanted then return {'BADTYPE', key .. ' is a ' .. kind .. ', not a ' .. wanted} end
end
redis.call('HSETNX', meta, 'format', format)
local declarations, paths, parameters, unknown = {}, {}, {}, {}
for i = 5, #ARGV, 3 do
  local id, declared, signature = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if declared ~= '' then
    declarations[#declarations + 1], declarations[#declarations + 2] = id, declared
  else
    paths[#paths + 1], paths[#paths + 2] = now, id
    if signature ~= '' then
      parameters[#parameters + 1], parameters[#parameters + 2] = id, signature
    else
      unknown[#unknown + 1] = id
    end
  end
end
if #declarations > 0 then redis.call('HSET', announced, unpack(declarations)) end
if #paths > 0 then redis.call('ZADD', functions, unpack(paths)) end
if #parameters > 0 then redis.call('HSET', signatures, unpack(parameters)) end
if #unknown > 0 then redis.call('HDEL', signatures, unpack(unknown)) end
for _, path in ipairs(redis.call('ZRANGEBYSCORE', functions, '-inf', now - kept)) do
  redis.call('ZREM', functions, path)
  redis.call('HDEL', signatures, path)
end
redis.call('PEXPIRE', signatures, kept)
redis.call('ZREMRANGEBYSCORE', announcements, '-inf', now)
if digest ~= '' then
  redis.call('PEXPIRE', announced, ttl)
  redis.call('ZADD', announcements, now + ttl, digest)
end
return {'OK', ''}
