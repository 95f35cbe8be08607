#!lua flags=no-writes
-- Tells of schedules what they are and what the index says about them.
--
-- KEYS[1] due              zset  id → due_at in ms
-- ARGV[1] schedule_prefix  text  followed by an id: the hash of that schedule
-- ARGV[2] lock_prefix      text  followed by an id: its lock
-- ARGV[3…] items, each of
-- ITEM[1] id  text  a schedule
--
-- Replies {line, …}, one for each item, for a list of lists is slow to read. A line has the type of its key, its score in the
-- index, for how many ms it is locked, then the fields below; the character 31 is between them, and what is not there is empty
local due = KEYS[1]
local schedule_prefix, lock_prefix = ARGV[1], ARGV[2]

-- include sane

local locks, lines = {}, {}
for i = 3, #ARGV do locks[#locks + 1] = lock_prefix .. ARGV[i] end
local held, scores = redis.call('MGET', unpack(locks)), kind_of(due) == 'zset' and redis.call('ZMSCORE', due, unpack(ARGV, 3)) or {}

local function line(n, key)
  local h = redis.pcall('HMGET', key, 'state', 'due_at', 'pause_until', 'queue', 'consecutive_failures', 'unannounced_at', 'source',
    'overlap', 'override', 'func')
  local kind = h[1] and 'hash' or kind_of(key)  -- what has a state is a hash
  if h['err'] and kind == 'hash' then error(h['err']) end  -- this user may not
  local told = {kind, scores[n] or '', held[n] and tostring(redis.call('PTTL', locks[n])) or ''}
  for i = 1, 8 do told[i + 3] = h[i] or '' end
  told[12], told[13] = h[9] and '1' or '', h[7] == 'api' and h[10] or ''
  return table.concat(told, '\31')
end

for n = 1, #locks do lines[n] = line(n, schedule_prefix .. ARGV[n + 2]) end
return lines
