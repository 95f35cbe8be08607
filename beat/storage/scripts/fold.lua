#!lua
-- Adds to the histograms of the metrics what the next events tell about times. Up to which event that was done is kept beside
-- them, in the same step: each event counts once, whichever beat does this. What was trimmed before that is counted, too.
--
-- KEYS[1] events   stream  every verdict and outcome
-- KEYS[2] metrics  hash    the histograms, and where they stand
-- ARGV[1] count    count   how many events at most
-- ARGV[2] bounds   text    the upper bounds of the buckets, in seconds, parted by blanks
--
-- Replies {code, words}
--   OK       words: how many events were read
--   BADTYPE  words: the key that is not what it should be
local events, metrics = unpack(KEYS)
local count, bounds = unpack(ARGV)

-- include instants
-- include sane
-- include amounts
-- include allowed
-- include acl

local nought, longest = '0-0', 1e12
local asked = {manual = true, backfill = true, follows = true}  -- by whom a run is wanted that has no time by the clock
local has_ended = {succeeded = true, failed = true, stopped = true, lost = true}
local buckets, fresh = {}, {}
for each in string.gmatch(bounds, '%S+') do buckets[#buckets + 1] = {word = each, most = tonumber(each)} end

local function add(name, seconds)
  if not seconds or not (seconds >= 0 and seconds < longest) then return end
  local word = 'inf'
  for _, bucket in ipairs(buckets) do
    if seconds <= bucket.most then word = bucket.word break end
  end
  fresh[name .. ':' .. word] = (fresh[name .. ':' .. word] or 0) + 1
  fresh[name .. ':sum'] = (fresh[name .. ':sum'] or 0) + seconds
end

local function own(entry)  -- what the line says of itself; what follows may be long, and is somebody's own
  return string.sub(entry, 1, string.find(entry, '[^\\]": ?{') or -1)
end

local function number_in(line, name)  -- whoever wrote a quote in a text, it is escaped
  return tonumber(string.match(line, '[{,] ?"' .. name .. '": ?([%d.eE+-]+)[ ,}]') or nil)
end

local function learn(fields)
  local told = {}
  for i = 1, #fields - 1, 2 do told[fields[i]] = fields[i + 1] end
  if not told.entry or not (told.type == 'enqueued' or has_ended[told.type]) then return end
  local line = own(told.entry)  -- read as text: to decode what jobs report takes many times as long
  if has_ended[told.type] then
    add('duration', number_in(line, 'duration'))
    add('wait', number_in(line, 'waited'))
  elseif not asked[string.match(line, '[{,] ?"by": ?"(%l+)"')] then
    local late_ms = number_in(line, 'late_ms')
    add('lateness', late_ms and late_ms / 1000)
  end
end

local function is_before(one, other)
  local a, b = {string.match(one, '^(%d+)%-(%d+)$')}, {string.match(other, '^(%d+)%-(%d+)$')}
  if tonumber(a[1]) ~= tonumber(b[1]) then return tonumber(a[1]) < tonumber(b[1]) end
  return tonumber(a[2]) < tonumber(b[2])
end

local function place(stream)  -- after which event to read, how many there were up to it, how many of them nobody has folded
  local at, seen, missed = unpack(redis.call('HMGET', metrics, 'at', 'seen', 'missed'))
  local added, newest = stream['entries-added'], stream['last-generated-id']
  local gone = added - stream['length']
  seen, missed = amount(seen), amount(missed)
  if not at then return nought, gone, missed end  -- what went before the first look is nobody's loss
  local ms, nth = string.match(at, '^(%d+)%-(%d+)$')
  if not ms or #ms > 15 or #nth > 15 then return newest, added, missed end  -- so that nothing counts twice
  if is_before(newest, at) then
    if added >= seen then return newest, added, missed end
    at, seen = nought, 0  -- the stream is another one, by a clock that was put back
  elseif added < seen then
    seen = gone  -- another one, all of which is news
  end
  return at, math.max(seen, gone), missed + math.max(gone - seen, 0)
end

for key, wanted in pairs({[events] = 'stream', [metrics] = 'hash'}) do
  local kind = kind_of(key)
  if kind ~= 'none' and kind ~= wanted then return {'BADTYPE', key .. ' is a ' .. kind .. ', not a ' .. wanted} end
end
if kind_of(events) == 'none' then return {'OK', '0'} end
local found, stream = redis.call('XINFO', 'stream', events), {}
for i = 1, #found, 2 do stream[found[i]] = found[i + 1] end
local at, seen, missed = place(stream)
local page = redis.call('XRANGE', events, '(' .. at, '+', 'COUNT', count)
for _, each in ipairs(page) do learn(each[2]) end
if #page > 0 then at = page[#page][1] end
grow(metrics, fresh)
redis.call('HSET', metrics, 'at', at, 'seen', string.format('%.0f', math.min(seen + #page, stream['entries-added'])), 'missed', string.format('%.0f', missed))
return {'OK', tostring(#page)}
