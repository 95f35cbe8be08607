#!lua
-- Makes a page of schedules whole: the index says what the hashes say, what cannot be read is set apart as broken with
-- the reason, and what has become readable again goes on. A schedule whose lock is held is left to whoever holds it.
--
-- KEYS[1] schedules        set   every id
-- KEYS[2] due              zset  id → due_at in ms
-- ARGV[1] schedule_prefix  text  followed by an id: the hash of that schedule
-- ARGV[2] lock_prefix      text  followed by an id: its lock
-- ARGV[3…] items, each of
-- ITEM[1] id  text  the schedule
--
-- Replies {{code, words}, …}, one for each item
--   SAME     nothing to do
--   LOCKED   a beat is at work on it
--   INDEXED  the index said something else; it was put right
--   GONE     there is no such schedule; taken out of index and set
--   BROKEN   its hash cannot be used; words: why
--   MENDED   it was broken, and can be used again
--   BADTYPE  a key is not what it should be
local schedules, due = KEYS[1], KEYS[2]
local schedule_prefix, lock_prefix = unpack(ARGV, 1, 2)

-- include instants
-- include now
-- include sane

local function index(id, score)
  local found = redis.call('ZSCORE', due, id)
  -- A claim that was never given back, or what could not be enqueued, is hidden for a while: that is as it should be.
  local hidden = score and found and tonumber(found) >= score and tonumber(found) <= now + 30000
  if hidden or (not score and not found) or (score and found and tonumber(found) == score) then return 'SAME', '' end
  if score then redis.call('ZADD', due, score, id) else redis.call('ZREM', due, id) end
  return 'INDEXED', ''
end

local function repair(id)
  local key = schedule_prefix .. id
  local kind = kind_of(key)
  if kind == 'none' then
    redis.call('SREM', schedules, id)
    redis.call('ZREM', due, id)
    return 'GONE', ''
  end
  if kind ~= 'hash' then return 'BADTYPE', key .. ' is a ' .. kind end
  local h = redis.call('HMGET', key, 'state', 'rev', 'next_run', 'due_at', 'run_count', 'skip_count', 'last_error')
  local state, rev, next_run, due_at, run_count, skip_count, last_error = unpack(h)
  local wrong = problem(rev, next_run, due_at, run_count, skip_count)
  if not wrong and state == 'active' and not next_run then wrong = 'next_run is missing' end
  redis.call('SADD', schedules, id)
  if redis.call('EXISTS', lock_prefix .. id) == 1 then return 'LOCKED', '' end
  if wrong then
    redis.call('ZREM', due, id)
    if state == 'broken' and last_error == wrong then return 'SAME', '' end
    redis.call('HSET', key, 'state', 'broken', 'last_error', wrong, 'updated_at', now_text)
    return 'BROKEN', wrong
  end
  if state == 'broken' and next_run and not string.find(last_error or '', '^definition ') then  -- which is not for here
    redis.call('HSET', key, 'state', 'active', 'updated_at', now_text)
    redis.call('ZADD', due, to_ms(due_at), id)
    return 'MENDED', ''
  end
  return index(id, state == 'active' and to_ms(due_at) or nil)
end

local replies, refused = {}, nil
for key, wanted in pairs({[schedules] = 'set', [due] = 'zset'}) do
  local kind = kind_of(key)
  if kind ~= 'none' and kind ~= wanted then refused = {'BADTYPE', key .. ' is a ' .. kind .. ', not a ' .. wanted} end
end
for i = 3, #ARGV do replies[#replies + 1] = refused or {repair(ARGV[i])} end
return replies
