#!lua
-- Deletes a schedule, with its ledger and all that is known about it; what it has enqueued stays. One that a live beat
-- declares would come back at once, and is left alone.
--
-- KEYS[1] schedules        set     every id
-- KEYS[2] due              zset    id → due_at in ms
-- KEYS[3] events           stream  what operators do, for whoever reads it
-- KEYS[4] announcements    zset    digest → when it lapses, in ms, of each live registry
-- KEYS[5] waiting_slots    zset    slot → when to look next, in ms
-- ARGV[1] schedule_prefix  text    followed by an id: the hash of that schedule
-- ARGV[2] template_prefix  text    followed by an id: the fields of its job
-- ARGV[3] announced_prefix text    followed by a digest: id → rev, what that registry declares
-- ARGV[4] runs_prefix      text    followed by an id: its ledger
-- ARGV[5] running_prefix   text    followed by a slot: the jobs that take up its room
-- ARGV[6] waiting_prefix   text    followed by a slot: the ticks that wait for room
-- ARGV[7] index_prefix     text    followed by a state: the ids of all that are in it
-- ARGV[8] app_prefix       text    followed by an application: the ids that its code has declared
-- ARGV[9] followers_prefix text    followed by an id: the ids of those that follow it
-- ARGV[10] slow_prefix     text    followed by an id: its newest slow jobs
-- ARGV[11] events_limit    count   about how many events are kept
-- ARGV[12] history_limit   count   how many verdicts a ledger keeps
-- ARGV[13] by              text    the operator
-- ARGV[14] state           word    the state that it must be in; nothing for any
-- ARGV[15…] items, each of
-- ITEM[1] id       text   the schedule
-- ITEM[2] version  count  the version that it must have; nothing for any
--
-- Replies {{code, words}, …}, one for each item
--   OK        it is gone
--   GONE      there is no such schedule
--   DECLARED  a live beat declares it
--   INACTIVE  it is in another state; words: which
--   CONFLICT  it has another version; words: which
local schedules, due, events, announcements, waiting_slots = unpack(KEYS)
local schedule_prefix, template_prefix, announced_prefix, runs_prefix, running_prefix, waiting_prefix = unpack(ARGV, 1, 6)
local index_prefix, app_prefix, followers_prefix, slow_prefix = ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local events_limit, history_limit, by, state = ARGV[11], ARGV[12], ARGV[13], ARGV[14]

-- include instants
-- include now
-- include sane
-- include quoted
-- include outbox
-- include ledger
-- include index
-- include announced
-- include allowed
-- include acl

local first, width = 15, 2

local function leave_line(id, group)  -- what waits for the room of a group stands in its line, too
  local own, shared = waiting_prefix .. id, waiting_prefix .. '@' .. group
  for _, member in ipairs(kind_of(own) == 'zset' and redis.call('ZRANGE', own, 0, -1) or {}) do redis.pcall('ZREM', shared, member) end
end

local function remove(id, version)
  local key = schedule_prefix .. id
  local kind = kind_of(key)
  if kind == 'none' then return 'GONE', '' end
  local found = kind == 'hash' and redis.call('HMGET', key, 'state', 'version', 'app', 'definition', 'follows', 'group') or {}
  local now_state, now_version, app, definition, follows, group = unpack(found, 1, 6)
  if version ~= '' and version ~= (now_version or '') then return 'CONFLICT', now_version or '' end
  if state ~= '' and state ~= now_state then return 'INACTIVE', now_state or '' end
  if is_announced(id) then return 'DECLARED', '' end
  if group then leave_line(id, group) end
  if follows then redis.pcall('SREM', followers_prefix .. follows, id) end
  redis.call('DEL', key, template_prefix .. id, runs_prefix .. id, running_prefix .. id, waiting_prefix .. id, slow_prefix .. id)
  redis.pcall('SREM', schedules, id)
  redis.pcall('ZREM', due, id)
  redis.pcall('ZREM', waiting_slots, id)
  strike(id)
  enlist(id, '')
  for _, name in ipairs({'failing', 'overridden', 'monitored'}) do redis.pcall('SREM', index_prefix .. name, id) end
  if app then redis.pcall('SREM', app_prefix .. app, id) end
  local line = '{"type":"removed","definition":' .. quoted(definition or '') .. ',"at":"' .. now_text .. '","beat":' .. quoted(by) .. '}'
  tell(id, 'removed', line, 'tick', '', 'job', '', 'by', by)
  return 'OK', ''
end

local replies = {}
for i = first, #ARGV, width do replies[#replies + 1] = {remove(ARGV[i], ARGV[i + 1])} end
return replies
