#!lua
-- Writes what a sign means for incidents, and what is to be sent because of it, in one step with the acknowledgement of
-- the event that told it: a kill before it repeats the decision, after it never.
--
-- KEYS[1] events             stream  the outbox
-- KEYS[2] incidents          hash    rule, family and subject → what is remembered, as JSON
-- KEYS[3] lock               string  the token of the only one who may decide
-- ARGV[1] deliveries_prefix  text    followed by a channel: message → when to try, in ms
-- ARGV[2] messages_prefix    text    followed by a channel: message → what it says, as JSON
-- ARGV[3] group              text    who reads the events
-- ARGV[4] event              id      the one that is decided on; nothing for what no event tells
-- ARGV[5] idle               ids     those that mean nothing, with a blank between them: they are acknowledged, too
-- ARGV[6] token              text    ours; nothing if everybody may decide
-- ARGV[7] most               count   how many incidents are remembered
-- ARGV[8] most_waiting       count   how many messages may wait for a channel
-- ARGV[9] kept               ms      how long messages are kept
-- ARGV[10…] items, each of
-- ITEM[1] kind  word  state, message
-- ITEM[2] of    text  the name of the state; or the channel of the message
-- ITEM[3] key   text  the state as it was seen, nothing if there was none; or the incident and which message this is
-- ITEM[4] text  text  the state from now on, nothing if it is over; or what the message says
--
-- Replies {code, words}
--   OK       done; words: how many incidents and messages were given up for it
--   FENCED   the lock ran out, or somebody else has it
--   STALE    the event is in nobody's hands: somebody else has decided
--   CHANGED  a state is not the one that was seen
--   BADTYPE  words: the key that is not what it should be
local events, incidents, lock = KEYS[1], KEYS[2], KEYS[3]
local deliveries_prefix, messages_prefix, group, event, idle, token, most, most_waiting, kept = unpack(ARGV, 1, 9)

-- include instants
-- include now
-- include sane
-- include allowed
-- include acl

local first, width = 10, 4
local given_up = 0

local function is_in_hand()
  if kind_of(events) ~= 'stream' then return false end
  local found = redis.pcall('XPENDING', events, group, event, event, 1)
  return not found['err'] and #found == 1
end

local function remember(name, text)
  if text == '' then redis.call('HDEL', incidents, name) return end
  if redis.call('HSET', incidents, name, text) == 1 and redis.call('HLEN', incidents) > tonumber(most) then
    local other = redis.call('HRANDFIELD', incidents, 2)  -- should it still go on, it begins anew
    redis.call('HDEL', incidents, other[1] == name and other[2] or other[1])
    given_up = given_up + 1
  end
end

local function send(channel, key, text)
  local deliveries, messages = deliveries_prefix .. channel, messages_prefix .. channel
  redis.call('ZADD', deliveries, 'NX', now, key)
  redis.call('HSET', messages, key, text)
  if redis.call('ZCARD', deliveries) > tonumber(most_waiting) then
    local soonest = redis.call('ZRANGE', deliveries, 0, 0)[1]
    redis.call('ZREM', deliveries, soonest)
    redis.call('HDEL', messages, soonest)
    given_up = given_up + 1
  end
  redis.call('PEXPIRE', deliveries, kept)
  redis.call('PEXPIRE', messages, kept)
end

if token ~= '' and (kind_of(lock) ~= 'string' or redis.call('GET', lock) ~= token) then return {'FENCED', ''} end
local wanted = {[incidents] = 'hash'}
for at = first, #ARGV, width do
  local kind, of = ARGV[at], ARGV[at + 1]
  if kind == 'message' then
    wanted[deliveries_prefix .. of] = 'zset'
    wanted[messages_prefix .. of] = 'hash'
  end
end
for name, kind in pairs(wanted) do
  local found = kind_of(name)
  if found ~= 'none' and found ~= kind then return {'BADTYPE', name .. ' is a ' .. found .. ', not a ' .. kind} end
end
if event ~= '' and not is_in_hand() then return {'STALE', ''} end
for at = first, #ARGV, width do
  local kind, of, key, text = unpack(ARGV, at, at + width - 1)
  if kind == 'state' and (redis.call('HGET', incidents, of) or '') ~= key then return {'CHANGED', of} end
end
for at = first, #ARGV, width do
  local kind, of, key, text = unpack(ARGV, at, at + width - 1)
  if kind == 'state' then remember(of, text) else send(of, key, text) end
end
for each in string.gmatch(idle .. ' ' .. event, '%S+') do redis.call('XACK', events, group, each) end
return {'OK', tostring(given_up)}
