#!lua
-- Makes a page of schedules whole: the index says what the hashes say, what cannot be read is set apart as broken with
-- the reason, and what has become readable again goes on. A schedule whose lock is held is left to whoever holds it.
--
-- KEYS[1] schedules        set   every id
-- KEYS[2] due              zset  id → due_at in ms
-- KEYS[3] waiting_slots    zset  slot → when to look next, in ms: those for which ticks wait
-- ARGV[1] schedule_prefix  text  followed by an id: the hash of that schedule
-- ARGV[2] lock_prefix      text  followed by an id: its lock
-- ARGV[3] index_prefix     text  followed by a state: the ids of all that are in it
-- ARGV[4] app_prefix       text  followed by an application: the ids that its code has declared
-- ARGV[5] followers_prefix text  followed by an id: the ids of those that follow it
-- ARGV[6] waiting_prefix   text  followed by a slot: the ticks that wait for room
-- ARGV[7] longest_lock     ms    how long a lock lasts at most; one that lasts longer is cut to that
-- ARGV[8] hidden           ms    how far ahead a schedule may stand that cannot be fired; one whose claim was not given back as long as
--                                its lock lasts
-- ARGV[9…] items, each of
-- ITEM[1] id  text  the schedule
--
-- Replies {SAME, {which, code, words}, …}: every item is SAME but those that are named, counted from 1; 0 names them all
--   SAME     nothing to do
--   LOCKED   a beat is at work on it
--   INDEXED  the index said something else; it was put right
--   GONE     there is no such schedule; taken out of index and set
--   BROKEN   its hash cannot be used; words: why
--   MENDED   it was broken, and can be used again
--   BADTYPE  a key is not what it should be
local schedules, due, waiting_slots = unpack(KEYS)
local schedule_prefix, lock_prefix, index_prefix, app_prefix, followers_prefix, waiting_prefix = unpack(ARGV, 1, 6)
local longest_lock, hidden = tonumber(ARGV[7]), tonumber(ARGV[8])

-- include instants
-- include now
-- include sane
-- include index
-- include hall
-- include remaining

local furthest = now + math.max(hidden, longest_lock)
local known, listed, states, failing, overridden, monitored = {}, {}, {}, {}, {}, {}

local function index(id, score, found)
  -- A claim that was never given back, or what could not be enqueued, is hidden for a while: that is as it should be.
  local is_hidden = score and found and tonumber(found) >= score and tonumber(found) <= furthest
  if is_hidden or (not score and not found) or (score and found and tonumber(found) == score) then return 'SAME', '' end
  if score then redis.call('ZADD', due, score, id) else redis.call('ZREM', due, id) end
  return 'INDEXED', ''
end

local function follow(id, parent)  -- whether it was not among those that follow it
  local key = followers_prefix .. parent
  local added = redis.pcall('SADD', key, id)
  if type(added) == 'number' then return added == 1 end
  redis.call('DEL', key)  -- an index only
  return redis.call('SADD', key, id) == 1
end

local doubted = 2500  -- so many followers are looked at in a page
local function leave(id)  -- whether some were among its followers that are none: at most a hundred are looked at each time
  local left, ids = false, redis.pcall('SRANDMEMBER', followers_prefix .. id, math.min(100, doubted))
  doubted = doubted - #ids
  for _, each in ipairs(ids) do
    local parent, state = unpack(redis.pcall('HMGET', schedule_prefix .. each, 'follows', 'state'))
    if parent ~= id or state == 'retired' then left = redis.call('SREM', followers_prefix .. id, each) == 1 or left end
  end
  return left
end

local function is_forgotten(id, group)  -- whether ticks of it wait, and nobody would have looked at them
  if kind_of(waiting_prefix .. id) ~= 'zset' then return false end
  local shared = group and kind_of(waiting_prefix .. '@' .. group) == 'zset'
  local all = shared and in_hall(id, group) == redis.call('ZCARD', waiting_prefix .. id)
  return redis.pcall('ZADD', waiting_slots, 'NX', now, all and '@' .. group or id) == 1
end

local function repair(id, lock, score)
  local key = schedule_prefix .. id
  local h = redis.pcall('HMGET', key, 'state', 'rev', 'next_run', 'due_at', 'run_count', 'skip_count', 'last_error', 'pause_until',
    'consecutive_failures', 'override', 'paused_at', 'source', 'app', 'follows', 'group', 'monitor')
  if h['err'] then return 'BADTYPE', key .. ' is a ' .. kind_of(key) end
  local state, rev, next_run, due_at, run_count, skip_count, last_error, pause_until, streak, override, paused_at, source, app, follows, group, monitor = unpack(h, 1, 16)
  if not rev and kind_of(key) == 'none' then
    redis.call('SREM', schedules, id)
    redis.call('ZREM', due, id)
    strike(id)
    enlist(id, '')
    redis.pcall('SREM', index_prefix .. 'failing', id)
    redis.pcall('SREM', index_prefix .. 'overridden', id)
    redis.pcall('SREM', index_prefix .. 'monitored', id)
    return 'GONE', ''
  end
  known[#known + 1] = id
  local waits = is_forgotten(id, group)  -- whoever has the lock: no tick that waits needs it
  local score_due = state == 'active' and to_ms(due_at) or state == 'paused' and to_ms(pause_until) or nil
  if lock then
    remaining(lock_prefix .. id, longest_lock)
    local is_far = score and score_due and tonumber(score) > math.max(score_due, furthest)
    return is_far and index(id, score_due, score) or 'LOCKED', ''
  end
  listed[#listed + 1] = id
  if source == 'code' and app and state ~= 'retired' then redis.pcall('SADD', app_prefix .. app, id) end
  local is_new = follows and state ~= 'retired' and follow(id, follows)
  local indexed = leave(id) or is_new or waits
  states[id], failing[id], overridden[id], monitored[id] = state, streak and streak ~= '0', override, monitor
  local wrong = problem(rev, next_run, due_at, run_count, skip_count, key)
  if not wrong and state == 'active' and not (next_run or follows) then wrong = 'next_run is missing' end
  if wrong then
    redis.call('ZREM', due, id)
    if state == 'broken' and last_error == wrong then return 'SAME', '' end
    redis.call('HSET', key, 'state', 'broken', 'last_error', wrong, 'updated_at', now_text)
    states[id] = 'broken'
    return 'BROKEN', wrong
  end
  if state == 'broken' and (next_run or follows) and not string.find(last_error or '', '^definition ') then  -- which is not for here
    states[id] = paused_at and 'paused' or 'active'  -- as it was before
    redis.call('HSET', key, 'state', states[id], 'updated_at', now_text)
    local awake = paused_at and to_ms(pause_until) or not paused_at and to_ms(due_at)
    if awake then redis.call('ZADD', due, awake, id) end
    return 'MENDED', ''
  end
  local code, words = index(id, score_due, score)
  return indexed and 'INDEXED' or code, words
end

local function enlist_all()  -- of a page most are active, and stand in none of the sets
  local wanted = {failing = failing, overridden = overridden, monitored = monitored}
  for _, state in ipairs({'paused', 'disabled', 'finished', 'retired', 'broken'}) do
    wanted[state] = {}
    for id, own in pairs(states) do wanted[state][id] = own == state end
  end
  for name, ids in pairs(wanted) do
    local key, kind = index_prefix .. name, kind_of(index_prefix .. name)
    if kind ~= 'none' and kind ~= 'set' then redis.call('DEL', key) end  -- an index only
    for n, is_in in ipairs(kind == 'set' and redis.call('SMISMEMBER', key, unpack(listed)) or {}) do
      if is_in == 1 and not ids[listed[n]] then redis.call('SREM', key, listed[n]) end
    end
    for _, id in ipairs(listed) do
      if ids[id] then redis.call('SADD', key, id) end
    end
  end
end

if #ARGV < 9 then return {'SAME'} end
for key, wanted in pairs({[schedules] = 'set', [due] = 'zset'}) do
  local kind = kind_of(key)
  if kind ~= 'none' and kind ~= wanted then return {'SAME', {0, 'BADTYPE', key .. ' is a ' .. kind .. ', not a ' .. wanted}} end
end
local locks = {}
for i = 9, #ARGV do locks[#locks + 1] = lock_prefix .. ARGV[i] end
local held, scores, replies = redis.call('MGET', unpack(locks)), redis.call('ZMSCORE', due, unpack(ARGV, 9)), {'SAME'}
for n = 1, #locks do
  local code, words = repair(ARGV[n + 8], held[n], scores[n])
  if code ~= 'SAME' then replies[#replies + 1] = {n, code, words} end
end
if #known > 0 then
  redis.call('SADD', schedules, unpack(known))
  arrange(known)
end
if #listed > 0 then enlist_all() end
return replies
