#!lua
-- Lets a lock last longer, if it is still ours.
--
-- KEYS[1] lock   string  the token of its holder
-- ARGV[1] token  text    ours
-- ARGV[2] ttl    ms      how long it lasts from now on
--
-- Replies
--   OK    it is ours, and lasts that long
--   LOST  it ran out, or somebody else has it
local lock = KEYS[1]
local token, ttl = ARGV[1], ARGV[2]

if redis.call('TYPE', lock)['ok'] ~= 'string' or redis.call('GET', lock) ~= token then return 'LOST' end
redis.call('PEXPIRE', lock, ttl)
return 'OK'
