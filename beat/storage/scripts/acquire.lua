#!lua
-- Takes a lock that no scheduler holds. A lock that would last longer than its time is cut to it.
--
-- KEYS[1] lock   string  the token of its holder
-- ARGV[1] token  text    ours
-- ARGV[2] ttl    ms      how long it lasts
--
-- Replies
--   OK    it is ours
--   HELD  somebody has it
--   CUT   another holder has it, and it lasted too long: from now on it lasts its full time
local lock = KEYS[1]
local token, ttl = ARGV[1], ARGV[2]

-- include remaining

if redis.call('SET', lock, token, 'NX', 'PX', ttl) then return 'OK' end
local _, is_cut = remaining(lock, ttl)
return is_cut and 'CUT' or 'HELD'
