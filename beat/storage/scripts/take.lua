#!lua
-- Hands a consumer of a group what the group has not had of the outbox, or says first how much of that is gone. How
-- many the group has had is written down with every step, for servers differ in how they count it. A group that begins
-- in the middle is counted from when it first is at the end.
--
-- KEYS[1] events    stream  the outbox
-- KEYS[2] lock      string  the token of the only one who may take; any key where there is no token
-- ARGV[1] group     text    made if there is none
-- ARGV[2] consumer  text    who asks
-- ARGV[3] count     count   how many events at most
-- ARGV[4] start     id      where a new group begins: after this event, or $ for after the newest
-- ARGV[5] known     id      where the group stood when this consumer last saw it, or nothing
-- ARGV[6] told      count   it was told of all that had gone when so many had, or nothing
-- ARGV[7] mine      word    yes: first what it was handed before and has not acknowledged
-- ARGV[8] idle      ms      what another consumer has not acknowledged for so long is handed to this one
-- ARGV[9] token     text    ours; nothing if everybody may take
--
-- Replies {code, words, …}
--   HAD      {where the group stands, {{id, fields}, …}}: handed out before; fields are nil if the event is gone
--   NEW      {where the group stands, {{id, fields}, …}}: nobody had them before; perhaps none
--   MISSED   {where it stands, how many have gone of all, of these not had or -1 if not known, the first that is there}
--   FENCED   {}: the lock ran out, or somebody else has it: nothing was handed out
--   LOST     {the newest id}: there is no such group any more
--   BADTYPE  {in words}: the outbox is not a stream
local events, lock = KEYS[1], KEYS[2]
local group, consumer, count, start, known, told, mine, idle, token = unpack(ARGV)
local forgotten = 24 * 60 * 60 * 1000

local function named(flat)
  local found = {}
  for i = 1, #flat, 2 do found[flat[i]] = flat[i + 1] end
  return found
end

local function before(a, b)
  local a_ms, a_seq = string.match(a, '^(%d+)-(%d+)$')
  local b_ms, b_seq = string.match(b, '^(%d+)-(%d+)$')
  if a_ms ~= b_ms then return tonumber(a_ms) < tonumber(b_ms) end
  return tonumber(a_seq) < tonumber(b_seq)
end

if token ~= '' and (redis.call('TYPE', lock)['ok'] ~= 'string' or redis.call('GET', lock) ~= token) then
  return {'FENCED', ''}
end
local kind = redis.call('TYPE', events)['ok']
if kind ~= 'none' and kind ~= 'stream' then return {'BADTYPE', events .. ' is a ' .. kind .. ', not a stream'} end
local about = kind == 'stream' and named(redis.call('XINFO', 'stream', events)) or {}
local added, newest = about['entries-added'] or 0, about['last-generated-id'] or '0-0'
local first = about['first-entry'] and about['first-entry'][1] or nil
local gone = added - (about['length'] or 0)

local function place_of(id)  -- how many events came up to this one; nil if that is not known without counting them
  if not before(id, newest) then return added end
  return first and gone == 0 and before(id, first) and 0 or nil
end

local function find()
  for _, each in ipairs(kind == 'stream' and redis.call('XINFO', 'groups', events) or {}) do
    local found = named(each)
    if found['name'] == group then return found['last-delivered-id'], found['entries-read'] or nil end
  end
end

local function put(id, had)
  if had then redis.call('XGROUP', 'setid', events, group, id, 'entriesread', had) end
end

local function forget_consumers()
  for _, each in ipairs(redis.call('XINFO', 'consumers', events, group)) do
    local found = named(each)
    if found['pending'] == 0 and found['idle'] > forgotten then
      redis.call('XGROUP', 'delconsumer', events, group, found['name'])
    end
  end
end

local function handed_before(since, ...)  -- to anybody, or to this consumer
  local found = {}
  for _, each in ipairs(redis.call('XPENDING', events, group, 'idle', since, '-', '+', count, ...)) do
    local id = each[1]
    local there = redis.call('XRANGE', events, id, id)[1]
    if there then redis.call('XCLAIM', events, group, consumer, 0, id) end  -- what is gone stays until it was told
    found[#found + 1] = there or {id, false}
  end
  return found
end

local stands, had = find()
if not stands then
  if known ~= '' then return {'LOST', newest} end
  stands = (start == '$' or before(newest, start)) and newest or start
  had = place_of(stands) or before(stands, first or newest) and gone or nil  -- it begins with what is there
  redis.call('XGROUP', 'create', events, group, stands, 'mkstream')
  put(stands, had)
end
if told ~= '' and stands == known and (had or 0) < tonumber(told) then
  had = tonumber(told)
  put(stands, had)
end
had = had or place_of(stands)
if before(stands, first or newest) and (not had or had < gone) then
  return {'MISSED', stands, gone, had and gone - had or -1, first or ''}
end
if mine == 'yes' then forget_consumers() end
local entries = mine == 'yes' and handed_before(0, consumer) or {}
if #entries == 0 then entries = handed_before(idle) end
if #entries > 0 then return {'HAD', stands, entries} end
local found = redis.call('XREADGROUP', 'group', group, consumer, 'count', count, 'streams', events, '>')
entries = found and found[1][2] or {}
if #entries > 0 then
  stands = entries[#entries][1]
  put(stands, stands == newest and added or had and had + #entries)
end
return {'NEW', stands, entries}
