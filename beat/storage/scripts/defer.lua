#!lua
-- Moves the time at which the next tick of a schedule is due, once: the tick stays the one that it is.
--
-- KEYS[1] schedule      hash    the schedule
-- KEYS[2] due           zset    id → due_at in ms
-- KEYS[3] runs          list    its ledger
-- KEYS[4] events        stream  what operators do, for whoever reads it
-- ARGV[1] schedule_id   text    the schedule
-- ARGV[2] rev           text    the definition that was seen
-- ARGV[3] tick          time    the next tick that was seen
-- ARGV[4] due_at        time    when it is to fire
-- ARGV[5] version       count   the version that the schedule must have; nothing for any
-- ARGV[6] by            text    the operator
-- ARGV[7] history_limit count   how many verdicts a ledger keeps
-- ARGV[8] events_limit  count   about how many events are kept
-- ARGV[9] runs_prefix   text    followed by an id: its ledger
--
-- Replies {code, words}
--   OK        it fires then
--   PAST      that time is past; words: the time by Redis' clock
--   GONE      there is no such schedule
--   CHANGED   the schedule changed meanwhile, or the tick has its verdict: look again
--   INACTIVE  it is paused, disabled …; words: its state
--   CONFLICT  it has another version; words: which
--   BADTYPE   a key is not what it should be
local schedule, due, runs, events = unpack(KEYS)
local schedule_id, rev, tick, due_at, version, by, history_limit, events_limit, runs_prefix = unpack(ARGV)

-- include instants
-- include now
-- include sane
-- include quoted
-- include outbox
-- include ledger
-- include acted
-- include allowed
-- include acl

for key, wanted in pairs({[schedule] = 'hash', [due] = 'zset', [runs] = 'list', [events] = 'stream'}) do
  local kind = kind_of(key)
  if kind ~= 'none' and kind ~= wanted then return {'BADTYPE', key .. ' is a ' .. kind .. ', not a ' .. wanted} end
end
local state, now_rev, next_run, now_version = unpack(redis.call('HMGET', schedule, 'state', 'rev', 'next_run', 'version'))
if not state then return {'GONE', ''} end
if version ~= '' and version ~= (now_version or '') then return {'CONFLICT', now_version or ''} end
if state ~= 'active' then return {'INACTIVE', state} end
if now_rev ~= rev or next_run ~= tick then return {'CHANGED', ''} end
if to_ms(due_at) <= now then return {'PAST', now_text} end
redis.call('HSET', schedule, 'due_at', due_at, 'moved', tick, 'moved_by', by, 'updated_at', now_text, 'version', (tonumber(now_version or '') or 0) + 1)
redis.call('ZADD', due, to_ms(due_at), schedule_id)
acted(schedule_id, schedule, 'deferred', tick, due_at, '', by)
return {'OK', ''}
