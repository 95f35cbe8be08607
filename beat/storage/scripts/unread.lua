#!lua
-- Notes the queues to which ticks go although no worker reads them, so that of all beats one says so, and one that it is over.
--
-- KEYS[1] unread        hash    queue → since when, and when a tick last went there
-- KEYS[2] events        stream  the outbox
-- ARGV[1] beat          text    who has looked
-- ARGV[2] kept          ms      how long a queue stays noted to which no tick goes any more
-- ARGV[3] most          count   how many may be noted
-- ARGV[4] events_limit  count   how many events the outbox keeps, about
-- ARGV[5…] items, each of
-- ITEM[1] queue    text  its name
-- ITEM[2] staffed  word  1 when a worker reads it, 0 when none does, nothing when nobody knows
-- ITEM[3] sent     word  1 when a tick has just gone there, else 0
--
-- Replies {{queue, …}, {code, words}, …}: those that are noted from now on, then one for each item
--   NEW   no worker reads it, and nobody had said so
--   BACK  a worker reads it again; words: since when none did
--   SAME  there is nothing to say about it
local unread, events = KEYS[1], KEYS[2]
local beat, kept, most, events_limit = unpack(ARGV, 1, 4)

-- include instants
-- include now
-- include sane
-- include quoted
-- include allowed
-- include acl
-- include outbox

local first, width = 5, 3
local noted, number, replies = {}, 0, {{}}

local function read(value)  -- when it began, and the last tick; nothing if that is no such value
  local since, last = string.match(value, '^(%S+) ?(%S*)$')
  local at = since and to_ms(last ~= '' and last or since)
  return at and to_ms(since) and since, at
end

local function say(type, queue, since)
  local line = '{"type":"' .. type .. '","queue":' .. quoted(queue) .. (since and ',"since":' .. quoted(since) or '')
    .. ',"at":"' .. now_text .. '","beat":' .. quoted(beat) .. '}'
  tell('', type, line, 'tick', '', 'job', '', 'by', beat)
end

local function note(queue, since)
  redis.call('HSET', unread, queue, since .. ' ' .. now_text)
  noted[queue] = {since, now}
end

local function decide(queue, staffed, sent)
  local known = noted[queue]
  if staffed == '1' and known then
    redis.call('HDEL', unread, queue)
    noted[queue], number = nil, number - 1
    say('worker_back', queue, known[1])
    return 'BACK', known[1]
  elseif staffed == '0' and not known and number < tonumber(most) then
    note(queue, now_text)
    number = number + 1
    say('no_worker', queue)
    return 'NEW', ''
  end
  if known and sent == '1' and now - known[2] > 60000 then note(queue, known[1]) end
  return 'SAME', ''
end

local kind = kind_of(unread)
if kind ~= 'none' and kind ~= 'hash' then number = tonumber(most) end  -- it is somebody else's, and stays as it is
local found = kind == 'hash' and redis.call('HGETALL', unread) or {}
for i = 1, #found, 2 do
  local since, last = read(found[i + 1])
  if since and now - last <= tonumber(kept) then
    noted[found[i]], number = {since, last}, number + 1
  else
    redis.call('HDEL', unread, found[i])
  end
end
for at = first, #ARGV, width do
  local queue, staffed, sent = unpack(ARGV, at, at + width - 1)
  replies[#replies + 1] = {decide(queue, staffed, sent)}
end
for queue in pairs(noted) do table.insert(replies[1], queue) end
return replies
