#!lua
-- Hands out the earliest schedules that are due, or will be within the lookahead. Each gets a lock, and is hidden until
-- that lock runs out: its score in `due` becomes the lock's expiry, so that other beats neither see nor scan it.
--
-- KEYS[1] due              zset   id → due_at in ms
-- KEYS[2] meta             hash   format; hold_from, hold_until: set by a beat that saw the clock jump
-- ARGV[1] schedule_prefix  text   followed by an id: the hash of that schedule
-- ARGV[2] lock_prefix      text   followed by an id: its lock
-- ARGV[3] token            text   what the locks will hold
-- ARGV[4] lock_ttl         ms     how long they last
-- ARGV[5] lookahead        ms     how early a tick is handed out
-- ARGV[6] limit            count  how many at most
-- ARGV[7] only             text   a Lua pattern that ids must match, or nothing
-- ARGV[8] format           count  the newest format of the keys that this beat understands
-- ARGV[9] slow_prefix      text   followed by an id: which of its last runs were slow, and when
-- ARGV[10] cycle           ms     how often a scheduler looks for due ticks
-- ARGV[11] misfire_limit   ms     how late a tick may fire, if its schedule does not say so itself
-- ARGV[12] early           ms     how long before it is due a tick is claimed, when there is room for it
-- ARGV[13…] items, each of
-- ITEM[1] id  text  a schedule that this beat cannot read: passed over
--
-- Replies {code, now in ms, claims, troubles, facts}
--   OK       claims: a line each, of id, rev, next_run, due_at in ms, priority and mark, for a list of lists is slow to
--            read. The mark is nothing; `moved` when an operator said when the tick is due; or when the pause ended that
--            holds it. What follows another has no next_run: it is handed out when its pause has ended.
--            troubles: {id, code, words} each:
--            LOCKED    another beat has it; words: the milliseconds until its lock runs out
--            GONE      there is no such schedule; taken out of the index
--            BADTYPE   its key is no hash; retried as `retry` says, as is BADSTATE
--            BADSTATE  its hash cannot be used
--            facts: what the claims may depend on besides their time, as JSON: of each that may its id, uses, how many of its
--            last runs were slow if that matters, and of what it requires the id, state and last_success each
--   NEWER    the keys were written by a newer beat: left alone; claims: their format
--   HOLD     the clock jumped: nothing is handed out until it has proved itself
--   BADTYPE  `due` or `meta` is not what it should be; claims: which, and what it is
local due, meta = KEYS[1], KEYS[2]
local schedule_prefix, lock_prefix, token, lock_ttl, lookahead, limit, only, format = unpack(ARGV, 1, 8)
local slow_prefix, cycle, misfire_limit, early = ARGV[9], ARGV[10], ARGV[11], ARGV[12]

-- include instants
-- include now
-- include sane
-- include quoted
-- include allowed
-- include acl
-- include remaining
-- include retry

for key, wanted in pairs({[due] = 'zset', [meta] = 'hash'}) do
  local kind = kind_of(key)
  if kind ~= 'none' and kind ~= wanted then
    return {'BADTYPE', now, key .. ' is a ' .. kind .. ', not a ' .. wanted, {}, ''}
  end
end
local known = redis.call('HMGET', meta, 'hold_from', 'hold_until', 'format')
local hold_from, hold_until = tonumber(known[1] or ''), tonumber(known[2] or '')
if known[3] and tonumber(known[3]) ~= tonumber(format) then return {'NEWER', now, known[3], {}, ''} end
if hold_from and hold_from > now then
  redis.call('HDEL', meta, 'hold_from', 'hold_until')  -- the jump was undone: the clock has gone back to before it
elseif hold_from and hold_until and now < hold_until then
  return {'HOLD', now, {}, {}, ''}
end

local horizon, claims, troubles, moves, facts, parents = now + lookahead, {}, {}, {}, {}, {}

local function move(id, score) moves[#moves + 1], moves[#moves + 2] = digits_of(score), id end

local function hide(id, untl, code, words)
  move(id, math.max(untl, horizon + 1))
  if code then troubles[#troubles + 1] = {id, code, words or ''} end
end

local function about(id)  -- what others require of a schedule; many may require the same
  if not parents[id] then
    local h = redis.pcall('HMGET', schedule_prefix .. id, 'state', 'last_success')
    parents[id] = '[' .. quoted(id) .. ',' .. quoted(h[1] or '') .. ',' .. quoted(h[2] or '') .. ']'
  end
  return parents[id]
end

local function tell_facts(id, uses, slow, requires)
  local window, told = string.match(slow or '', '^%d+ %d+ (%d+)$'), {}
  local count = window and redis.pcall('ZCOUNT', slow_prefix .. id, string.format('%.0f', now - window), now)
  for each in string.gmatch(requires or '', '([%w_-]+)[^,]*') do
    if #told == 10 then break end  -- no more may be required; who is told too little asks
    told[#told + 1] = about(each)
  end
  facts[#facts + 1] = '[' .. quoted(id) .. ',' .. quoted(uses or '') .. ',' .. (window and (type(count) == 'number' and count or 0) or 'null')
    .. ',[' .. table.concat(told, ',') .. ']]'
end

local function take(id)
  local key, lock = schedule_prefix .. id, lock_prefix .. id
  local h = redis.pcall('HMGET', key, 'state', 'rev', 'next_run', 'due_at', 'run_count', 'skip_count', 'priority', 'unannounced_at',
    'moved', 'follows', 'uses', 'slow', 'requires')
  local kind = not h[1] and kind_of(key)  -- what has a state is a hash
  if kind == 'hash' and h['err'] then return hide(id, retry_at(key), 'BADSTATE', h['err']) end
  if kind == 'none' then
    redis.call('ZREM', due, id)
    troubles[#troubles + 1] = {id, 'GONE', 'there is no ' .. key}
    return
  end
  if kind and kind ~= 'hash' then return hide(id, retry_at(key), 'BADTYPE', key .. ' is a ' .. kind) end
  local state, rev, next_run, due_at, run_count, skip_count, priority, unannounced_at, moved, follows, uses, slow, requires = unpack(h, 1, 13)
  local mark = moved and moved == next_run and 'moved' or ''
  if state == 'paused' then  -- with an end, after which it goes on
    mark = redis.call('HGET', key, 'pause_until') or ''
    due_at = to_ms(mark) and (follows and not next_run or next_run and to_ms(next_run)) and mark
  end
  local untimed = follows and not next_run
  if state ~= 'active' and not (state == 'paused' and due_at) or untimed and state == 'active' then return redis.call('ZREM', due, id) end
  if unannounced_at then return hide(id, now + 5000) end  -- held: perhaps its code is gone
  local wrong = problem(rev, next_run, state == 'paused' and next_run or not untimed and due_at, run_count, skip_count, key)
  if not wrong and not next_run and not untimed then wrong = 'next_run is missing' end
  if not wrong and not string.find(id, '^[%w_-]*$') then wrong = 'no schedule can have this id' end
  if wrong then return hide(id, retry_at(key, due_at and to_ms(due_at)), 'BADSTATE', wrong) end
  if to_ms(due_at) > horizon then return move(id, to_ms(due_at)) end
  if not redis.call('SET', lock, token, 'NX', 'PX', lock_ttl) then
    local left = remaining(lock, lock_ttl)
    return hide(id, now + left, 'LOCKED', tostring(left))
  end
  hide(id, now + lock_ttl)
  claims[#claims + 1] = id .. ' ' .. rev .. ' ' .. (next_run or '') .. ' ' .. digits_of(to_ms(due_at)) .. ' ' .. (priority and string.match(priority, '^%a*') or '')
    .. ' ' .. mark
  if uses or slow or requires then tell_facts(id, uses, slow, requires) end
end

-- Whatever is looked at leaves the window, except what is passed over: that is what `passed` counts.
local looked, passed, unread, page = 0, 0, {}, only == '' and limit or 1000
for i = 13, #ARGV do unread[ARGV[i]] = true end
while #claims < tonumber(limit) and looked < 1000 and passed < 50000 do
  local ids = redis.call('ZRANGEBYSCORE', due, '-inf', horizon, 'LIMIT', passed, page)
  if #ids == 0 then break end
  for _, id in ipairs(ids) do
    if unread[id] or #claims == tonumber(limit) or (only ~= '' and not string.find(id, only)) then
      passed = passed + 1
    else
      looked = looked + 1
      take(id)
    end
  end
  if #moves > 0 then redis.call('ZADD', due, unpack(moves)) end
  moves = {}
end
return {'OK', now, table.concat(claims, '\n'), troubles, table.concat(facts, ',')}
