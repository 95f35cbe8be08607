#!lua flags=no-writes
-- Tells of schedules what decides about their definitions; of those that are as they should be it tells nothing.
--
-- ARGV[1] schedule_prefix  text  followed by an id: the hash of that schedule
-- ARGV[2] template_prefix  text  followed by an id: the fields of its job
-- ARGV[3] app              text  the application that should have declared them; nothing for any
-- ARGV[4…] items, each of
-- ITEM[1] id    text  a schedule
-- ITEM[2] rev   text  the definition that it should have
-- ITEM[3] next  time  the tick that should be next; nothing when all is to be told
--
-- Replies {now in ms, a list as JSON}, for a list of lists is slow to read. The list has for each item that is not active
-- with this rev, this tick, this application, no override and a template: which one it is, counted from 0, its rev, timing_rev, state,
-- next_run, due_at, last_run, run_count, manual_count, last_skip, override, unannounced_at, source, app and
-- overridden_by, or null where there is none, and 1 if there is a template
local schedule_prefix, template_prefix, app = unpack(ARGV, 1, 3)

-- include instants
-- include now
-- include quoted

local first, width = 4, 3
local told, templates = {}, {}
for at = first, #ARGV, width do templates[#templates + 1] = template_prefix .. ARGV[at] end
local complete = #templates > 0 and redis.call('EXISTS', unpack(templates)) == #templates  -- mostly: none is asked for by itself

local function is_as_it_should_be(key, rev, next)
  local h = redis.pcall('HMGET', key, 'next_run', 'due_at', 'rev', 'state', 'app', 'override', 'unannounced_at')
  return h[1] == next and h[2] == next and h[3] == rev and h[4] == 'active' and (app == '' or h[5] == app)
    and not h[6] and not h[7]  -- what an operator has laid over it is in force, or is to be
end

local function look(at)
  local id, rev, next = unpack(ARGV, at, at + width - 1)
  local key, there = schedule_prefix .. id, complete and 1 or redis.call('EXISTS', template_prefix .. id)
  if next ~= '' and there == 1 and is_as_it_should_be(key, rev, next) then return end
  local h = redis.pcall('HMGET', key, 'rev', 'timing_rev', 'state', 'next_run', 'due_at', 'last_run', 'run_count',
    'manual_count', 'last_skip', 'override', 'unannounced_at', 'source', 'app', 'overridden_by')
  for i = 1, 14 do h[i] = h[i] and quoted(h[i]) or 'null' end  -- what is no hash has none of them
  told[#told + 1] = string.format('[%d,%s,%d]', (at - first) / width, table.concat(h, ','), there)
end

for at = first, #ARGV, width do look(at) end
return {now, '[' .. table.concat(told, ',') .. ']'}
