#!lua
-- Schedules that no live beat declares any more. At first their ticks are held, for their code may come back; after a while
-- they are taken out of the running: the ticks that were held pass as one stretch. What is known about them stays, and they
-- go on from then when their code comes back. What is paused stays so until its pause has ended.
--
-- KEYS[1] due              zset    id → due_at in ms
-- KEYS[2] events           stream  what happens, for whoever reads it
-- KEYS[3] announcements    zset    digest → when it lapses, in ms, of each live registry
-- ARGV[1] schedule_prefix  text    followed by an id: the hash of that schedule
-- ARGV[2] announced_prefix text    followed by a digest: id → rev, what that registry declares
-- ARGV[3] runs_prefix      text    followed by an id: its ledger
-- ARGV[4] index_prefix     text    followed by a state: the ids of all that are in it
-- ARGV[5] app_prefix       text    followed by an application: the ids that its code has declared
-- ARGV[6] followers_prefix text    followed by an id: the ids of those that follow it
-- ARGV[7] history_limit    count   how many verdicts a ledger keeps
-- ARGV[8] events_limit     count   about how many events are kept
-- ARGV[9] beat             text    who says so
-- ARGV[10] app             text    the application whose beat that is; nothing where the Redis is one's own
-- ARGV[11] retire_after    ms      how long they are held
-- ARGV[12…] items, each of
-- ITEM[1] id      text   the schedule
-- ITEM[2] tick    time   the tick that was seen as next; nothing when nothing was prepared
-- ITEM[3] last    time   the last of the ticks that pass when it is retired
-- ITEM[4] number  count  how many those are, or 0
-- ITEM[5] next    time   the tick after them, or nothing
--
-- Replies {{code, words}, …}, one for each item
--   OK        it is retired
--   HELD      its ticks are held; words: for how many more ms
--   PAUSED    the same, and they would not be fired anyway: it is retired when its pause has ended
--   DUE       it is to be retired: prepare the stretch that passes; words: its next tick
--   SAME      it was retired before, or is not to be: a live beat declares it, or it is not of this application's code
--   GONE      there is no such schedule
--   BADTYPE   a key is not what it should be
local due, events, announcements = unpack(KEYS)
local schedule_prefix, announced_prefix, runs_prefix, index_prefix, app_prefix, followers_prefix = unpack(ARGV, 1, 6)
local history_limit, events_limit, beat, app, retire_after = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]

-- include instants
-- include now
-- include sane
-- include quoted
-- include outbox
-- include ledger
-- include words
-- include index
-- include announced
-- include acted
-- include allowed
-- include acl

local first, width = 12, 5

local function misplaced(id)
  for key, type in pairs({[schedule_prefix .. id] = 'hash', [runs_prefix .. id] = 'list', [due] = 'zset', [events] = 'stream'}) do
    local kind = kind_of(key)
    if kind ~= 'none' and kind ~= type then return key .. ' is a ' .. kind .. ', not a ' .. type end
  end
end

local function retire(id, tick, last, number, next)
  local key, wrong = schedule_prefix .. id, misplaced(id)
  if wrong then return 'BADTYPE', wrong end
  local state, source, own, since, next_run, skip_count, kept, pause_until, version, follows, skips = unpack(redis.call('HMGET', key, 'state', 'source', 'app',
    'unannounced_at', 'next_run', 'skip_count', 'kept', 'pause_until', 'version', 'follows', 'skips'))
  if not state then
    redis.pcall('SREM', app_prefix .. app, id)
    return 'GONE', ''
  end
  if state == 'retired' or source ~= 'code' then return 'SAME', '' end
  if app ~= '' and (own ~= app or is_announced(id)) then return 'SAME', '' end
  if not to_ms(since) or to_ms(since) > now then  -- or Redis' clock has gone back since
    since = now_text
    redis.call('HSET', key, 'unannounced_at', since)
  end
  if app ~= '' and state == 'paused' and not (to_ms(pause_until) and to_ms(pause_until) <= now) then return 'PAUSED', '' end
  local left = to_ms(since) + retire_after - now
  if left > 0 then return 'HELD', string.format('%.0f', left) end
  local is_due = (state == 'active' or state == 'paused') and to_ms(next_run) and to_ms(next_run) <= now
  if is_due and (tick ~= next_run or number == '0') then return 'DUE', next_run end
  if is_due then
    local total = string.format('%.0f', (skip_count and is_count(skip_count) and skip_count or 0) + number)
    local line = '{"type":"skipped","tick":"' .. tick .. '","last":"' .. last .. '","count":' .. number .. ',"reason":"retired","n":' .. total
      .. ',"at":"' .. now_text .. '","beat":' .. quoted(beat) .. '}'
    kept = append_verdict(id, line, kept)
    tell(id, 'skipped', line)
    redis.call('HSET', key, 'skip_count', total, 'kept', kept, 'last_skip', last, 'skips', one_more(skips, 'retired', number))
    if next == '' then redis.call('HDEL', key, 'next_run', 'due_at') else redis.call('HSET', key, 'next_run', next, 'due_at', next) end
  end
  redis.call('HSET', key, 'state', 'retired', 'updated_at', now_text, 'version', grown(version))
  redis.call('HDEL', key, 'unannounced_at', 'pause_until', 'pause_reason', 'paused_by', 'paused_at', 'pause_scope')
  redis.call('ZREM', due, id)
  enlist(id, 'retired')
  if follows then redis.pcall('SREM', followers_prefix .. follows, id) end
  redis.pcall('SREM', app_prefix .. (own or app), id)
  acted(id, key, 'retired', next_run or '', '', '', beat)
  return 'OK', ''
end

local replies = {}
for i = first, #ARGV, width do replies[#replies + 1] = {retire(unpack(ARGV, i, i + width - 1))} end
return replies
