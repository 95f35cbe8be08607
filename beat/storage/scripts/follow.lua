#!lua
-- Hands successes on to followers where one success has too many of them for `close`: a part of them each time. The followers
-- that are still to have a tick stand in a set, and each leaves it in the step that writes its tick. So each follower has one
-- tick for this success, whichever scheduler is killed and whichever goes on.
--
-- KEYS[1] fanout           zset    `schedule tick job` of each success, and ` begun` once its set is made → when, in ms
-- KEYS[2] events           stream  every decision, for other programs
-- KEYS[3] waiting_slots    zset    slot → when to look next, in ms: those for which ticks wait
-- ARGV[1] schedule_prefix  text    followed by an id: the hash of that schedule
-- ARGV[2] runs_prefix      text    followed by an id: its ledger
-- ARGV[3] waiting_prefix   text    followed by a slot: its waiting list
-- ARGV[4] followers_prefix text    followed by an id: its followers
-- ARGV[5] fanout_prefix    text    followed by a job: the followers of its success that are still to have a tick
-- ARGV[6] token            text    the name of this scheduler
-- ARGV[7] history_limit    count   how many decisions a ledger keeps
-- ARGV[8] events_limit     count   about how many events are kept
--
-- Replies {code, now in ms, words, {schedule, why}, …}, with the schedule of each success that is dropped because the set of its
-- followers has been overwritten
--   OK       words: how many successes are left
--   BADTYPE  a key has another type; words: which
local fanout, events, waiting_slots = unpack(KEYS)
local schedule_prefix, runs_prefix, waiting_prefix, followers_prefix, fanout_prefix, token, history_limit, events_limit = unpack(ARGV)

-- include instants
-- include now
-- include sane
-- include quoted
-- include outbox
-- include ledger
-- include words
-- include allowed
-- include acl
-- include followers

local most, copied = 500, 20  -- so many followers in a step; to copy so many ids takes as long as one of these

local function begin(entry, id, rest)  -- with the followers that it has now
  redis.call('ZADD', fanout, redis.call('ZSCORE', fanout, entry), entry .. ' begun')
  redis.call('ZREM', fanout, entry)
  if kind_of(followers_prefix .. id) ~= 'set' then return 0 end
  redis.call('COPY', followers_prefix .. id, rest, 'REPLACE')
  return redis.call('SCARD', rest) / copied
end

local dropped = {}
local function drop(entry, id, job, kind)  -- the others must not wait, and a second tick for this success would be worse than none
  local words = fanout_prefix .. job .. ' is a ' .. kind .. ', not a set; some followers have no tick for the success of ' .. job
  redis.call('ZREM', fanout, entry)
  if kind_of(schedule_prefix .. id) == 'hash' then redis.call('HSET', schedule_prefix .. id, 'last_error', words) end
  dropped[#dropped + 1] = {id, words}
end

local function step(entry, room)  -- how much was done
  local id, tick, job, begun = string.match(entry, '^(%S+) (%S+) (%S+) ?(%a*)$')
  if not id or not to_ms(tick) then  -- not written by beat
    redis.call('ZREM', fanout, entry)
    return 1
  end
  local rest, work = fanout_prefix .. job, 1
  if begun == '' then
    work = work + begin(entry, id, rest)
    entry = entry .. ' begun'
  end
  local kind = kind_of(rest)
  if kind ~= 'set' and kind ~= 'none' then
    drop(entry, id, job, kind)
    return work
  end
  local ids = kind == 'set' and redis.call('SRANDMEMBER', rest, room) or {}
  for _, each in ipairs(ids) do
    if not hand_on(id, each, tick, job) then redis.pcall('SREM', followers_prefix .. id, each) end  -- an index only
  end
  if #ids > 0 then redis.call('SREM', rest, unpack(ids)) end
  if redis.call('EXISTS', rest) == 0 then redis.call('ZREM', fanout, entry) end
  return work + #ids
end

for key, wanted in pairs({[fanout] = 'zset', [events] = 'stream', [waiting_slots] = 'zset'}) do
  local kind = kind_of(key)
  if kind ~= 'none' and kind ~= wanted then return {'BADTYPE', now, key .. ' is a ' .. kind .. ', not a ' .. wanted} end
end
local work = 0
while work < most do
  local entry = redis.call('ZRANGE', fanout, 0, 0)[1]
  if not entry then break end
  work = work + step(entry, math.floor(most - work))
end
return {'OK', now, tostring(redis.call('ZCARD', fanout)), unpack(dropped)}
