#!lua
-- Shows that a beat is alive, renews what it announces, and keeps the highest time that a beat has found sound: after a jump
-- forward no time is sound before the hold has ended. Heartbeats and announcements that would last too long are cut.
--
-- KEYS[1] instance          hash  this beat
-- KEYS[2] instances         zset  the name of each beat → when its heartbeat lapses, in ms; kept for 15 minutes after that
-- KEYS[3] announced         hash  id → how its code declares it
-- KEYS[4] announcements     zset  digest → when that lapses, in ms
-- KEYS[5] meta              hash  format, time, mark, hold_from, hold_until
-- ARGV[1] name              text  of this beat
-- ARGV[2] ttl               ms    how long the heartbeat lasts
-- ARGV[3] digest            text  of what it announces, or nothing
-- ARGV[4] announced_ttl     ms    how long that lasts
-- ARGV[5] judged            ms    Redis' clock as this beat last found it sound, or 0
-- ARGV[6] mark              text  which start of which machine, its uptime and Redis' clock at that moment
-- ARGV[7] instance_prefix   text  followed by the name of a beat: its heartbeat
-- ARGV[8] announced_prefix  text  followed by a digest: what that registry declares
-- ARGV[9…] items, each of
-- ITEM[1] field  text  of the instance
-- ITEM[2] value  text  of that field
--
-- Replies {code, words}
--   OK       it is seen; words: the digests of all live registries
--   LOST     the format or the announcement is gone: somebody flushed; announce and register again
--   BADTYPE  words: the key that is not what it should be
local instance, instances, announced, announcements, meta = unpack(KEYS)
local name, ttl, digest, announced_ttl, judged, mark, instance_prefix, announced_prefix = unpack(ARGV, 1, 8)

-- include instants
-- include now
-- include sane
-- include remaining
-- include ahead

local remembered = 15 * 60 * 1000  -- ms for which the name of a beat is kept that ended without a word

local wanted = {[instance] = 'hash', [instances] = 'zset', [announced] = 'hash', [announcements] = 'zset', [meta] = 'hash'}
for key, kind in pairs(wanted) do
  local found = kind_of(key)
  if found ~= 'none' and found ~= kind then return {'BADTYPE', key .. ' is a ' .. found .. ', not a ' .. kind} end
end
redis.call('HSET', instance, 'seen_at', now_text, unpack(ARGV, 9))
redis.call('PEXPIRE', instance, ttl)
redis.call('ZREMRANGEBYSCORE', instances, '-inf', string.format('%.0f', now - remembered))
redis.call('ZADD', instances, now + ttl, name)
for _, other in ipairs(bring_near(instances, ttl, ttl)) do remaining(instance_prefix .. other, ttl) end
if redis.call('HEXISTS', meta, 'format') == 0 then return {'LOST', ''} end
local known = redis.call('HMGET', meta, 'time', 'hold_from', 'hold_until')
local high, hold_from, hold_until = to_ms(known[1] or ''), tonumber(known[2] or ''), tonumber(known[3] or '')
local sound = tonumber(judged)
local is_proved = sound <= now and not (hold_from and hold_until and hold_from <= sound and sound < hold_until)
if not high or high < sound and is_proved then
  local text = to_text(math.floor(judged / 1000), string.format('.%03d', judged % 1000))
  redis.call('HSET', meta, 'time', text, 'mark', mark)
end
redis.call('ZREMRANGEBYSCORE', announcements, '-inf', now)
for _, other in ipairs(bring_near(announcements, announced_ttl, announced_ttl)) do remaining(announced_prefix .. other, announced_ttl) end
if digest ~= '' then
  if redis.call('PEXPIRE', announced, announced_ttl) == 0 then return {'LOST', ''} end
  redis.call('ZADD', announcements, now + announced_ttl, digest)
end
return {'OK', table.concat(redis.call('ZRANGE', announcements, 0, -1), ' ')}
