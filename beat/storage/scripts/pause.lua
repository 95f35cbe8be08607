#!lua
-- Pauses schedules, until a time or until somebody resumes them: their ticks are held, and pass as one stretch when the
-- pause ends. One that is paused already gets the new end and the new reason.
--
-- KEYS[1] due              zset    id → due_at in ms; while paused, when the pause ends
-- KEYS[2] events           stream  what operators do, for whoever reads it
-- ARGV[1] schedule_prefix  text    followed by an id: the hash of that schedule
-- ARGV[2] runs_prefix      text    followed by an id: its ledger
-- ARGV[3] index_prefix     text    followed by a state: the ids of all that are in it
-- ARGV[4] history_limit    count   how many verdicts a ledger keeps
-- ARGV[5] events_limit     count   about how many events are kept
-- ARGV[6] by               text    the operator
-- ARGV[7] untl             time    when the pause ends; nothing for until somebody ends it
-- ARGV[8] reason           text    why, or nothing
-- ARGV[9] scope            word    one, or all when a whole namespace is paused: then what is paused already stays as it is
-- ARGV[10…] items, each of
-- ITEM[1] id       text   the schedule
-- ITEM[2] version  count  the version that it must have; nothing for any
--
-- Replies {{code, words}, …}, one for each item
--   OK        it is paused
--   SAME      it was paused just so
--   PAST      the end of the pause lies in the past; words: the time by Redis' clock
--   GONE      there is no such schedule
--   INACTIVE  it has no ticks to hold; words: its state
--   CONFLICT  it has another version; words: which
--   BADTYPE   a key is not what it should be
local due, events = KEYS[1], KEYS[2]
local schedule_prefix, runs_prefix, index_prefix, history_limit, events_limit, by, untl, reason, scope = unpack(ARGV, 1, 9)

-- include instants
-- include now
-- include sane
-- include quoted
-- include outbox
-- include ledger
-- include index
-- include acted
-- include allowed
-- include acl

local first, width = 10, 2

local function misplaced(id)
  local wanted = {[schedule_prefix .. id] = 'hash', [runs_prefix .. id] = 'list', [due] = 'zset', [events] = 'stream',
    [index_prefix .. 'paused'] = 'set'}
  for key, type in pairs(wanted) do
    local kind = kind_of(key)
    if kind ~= 'none' and kind ~= type then return key .. ' is a ' .. kind .. ', not a ' .. type end
  end
end

local function pause(id, version)
  local key, wrong = schedule_prefix .. id, misplaced(id)
  if wrong then return 'BADTYPE', wrong end
  local state, now_version, now_until, now_reason, next_run = unpack(redis.call('HMGET', key, 'state', 'version', 'pause_until',
    'pause_reason', 'next_run'))
  if not state then return 'GONE', '' end
  if version ~= '' and version ~= (now_version or '') then return 'CONFLICT', now_version or '' end
  if state ~= 'active' and state ~= 'paused' then return 'INACTIVE', state end
  if untl ~= '' and to_ms(untl) <= now then return 'PAST', now_text end
  if state == 'paused' and (scope == 'all' or (now_until or '') == untl and (now_reason or '') == reason) then return 'SAME', '' end
  redis.call('HDEL', key, 'pause_until', 'pause_reason')
  redis.call('HSET', key, 'state', 'paused', 'paused_at', now_text, 'paused_by', by, 'pause_scope', scope, 'updated_at', now_text,
    'version', (tonumber(now_version or '') or 0) + 1)
  if untl ~= '' then redis.call('HSET', key, 'pause_until', untl) end
  if reason ~= '' then redis.call('HSET', key, 'pause_reason', reason) end
  if untl ~= '' then redis.call('ZADD', due, to_ms(untl), id) else redis.call('ZREM', due, id) end
  enlist(id, 'paused')
  acted(id, key, 'paused', next_run or '', untl, reason, by)
  return 'OK', ''
end

local replies = {}
for i = first, #ARGV, width do replies[#replies + 1] = {pause(ARGV[i], ARGV[i + 1])} end
return replies
