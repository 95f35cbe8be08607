#!lua
-- Takes schedules out of the running whose code is gone. What is known about them stays, and they go on from then when
-- their code comes back.
--
-- KEYS[1] due              zset  id → due_at in ms
-- ARGV[1] schedule_prefix  text  followed by an id: the hash of that schedule
-- ARGV[2…] items, each of
-- ITEM[1] id  text  the schedule
--
-- Replies {{code, words}, …}, one for each item
--   OK       it fires no more
--   SAME     it was retired before, or did not come from the code
--   GONE     there is no such schedule
--   BADTYPE  a key is not what it should be
local due = KEYS[1]
local schedule_prefix = ARGV[1]

-- include instants
-- include now
-- include sane

local function retire(id)
  local key = schedule_prefix .. id
  local kind, index = kind_of(key), kind_of(due)
  if kind == 'none' then return 'GONE', '' end
  if kind ~= 'hash' then return 'BADTYPE', key .. ' is a ' .. kind end
  if index ~= 'none' and index ~= 'zset' then return 'BADTYPE', due .. ' is a ' .. index end
  local state, source = unpack(redis.call('HMGET', key, 'state', 'source'))
  if state == 'retired' or source ~= 'code' then return 'SAME', '' end
  redis.call('HSET', key, 'state', 'retired', 'updated_at', now_text)
  redis.call('ZREM', due, id)
  return 'OK', ''
end

local replies = {}
for i = 2, #ARGV do replies[#replies + 1] = {retire(ARGV[i])} end
return replies
