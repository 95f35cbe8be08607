#!lua
-- Gives a lock back, if it is still ours.
--
-- KEYS[1] lock   string  the token of its holder
-- ARGV[1] token  text    ours
--
-- Replies
--   OK    it is free
--   LOST  it ran out, or somebody else has it
local lock = KEYS[1]
local token = ARGV[1]

if redis.call('TYPE', lock)['ok'] ~= 'string' or redis.call('GET', lock) ~= token then return 'LOST' end
redis.call('DEL', lock)
return 'OK'
