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
-- next_run, due_at, last_run, run_count, manual_count, last_skip, override, unannounced_at, renamed_to, source, app and
-- overridden_by, or null where there is none, and 1 if there is a template
local schedule_prefix, template_prefix, app = unpack(ARGV, 1, 3)

-- include instants
-- include now
-- include quoted

local first, width = 4, 3
local told = {}

local function look(at)
  local id, rev, next = unpack(ARGV, at, at + width - 1)
  local h = redis.pcall('HMGET', schedule_prefix .. id, 'rev', 'timing_rev', 'state', 'next_run', 'due_at', 'last_run', 'run_count',
    'manual_count', 'last_skip', 'override', 'unannounced_at', 'renamed_to', 'source', 'app', 'overridden_by')
  local there = redis.call('EXISTS', template_prefix .. id)
  local same = next ~= '' and h[4] == next and h[5] == next and h[1] == rev and h[3] == 'active' and not h[11] and there == 1
    and (app == '' or h[14] == app) and not h[10]  -- what an operator has laid over it is in force, or is to be
  if same then return end
  for i = 1, 15 do h[i] = h[i] and quoted(h[i]) or 'null' end  -- what is no hash has none of them
  told[#told + 1] = string.format('[%d,%s,%d]', (at - first) / width, table.concat(h, ','), there)
end

for at = first, #ARGV, width do look(at) end
return {now, '[' .. table.concat(told, ',') .. ']'}
