#!lua flags=no-writes
-- Tells of schedules what decides about their definitions.
--
-- ARGV[1] schedule_prefix  text  followed by an id: the hash of that schedule
-- ARGV[2] template_prefix  text  followed by an id: the fields of its job
-- ARGV[3…] items, each of
-- ITEM[1] id  text  a schedule
--
-- Replies a list as JSON, for a list of lists is slow to read; for each item rev, timing_rev, state, next_run, due_at and
-- last_run, or null where there is none, and 1 if there is a template
local schedule_prefix, template_prefix = ARGV[1], ARGV[2]

-- include quoted

local function look(id)
  local h = redis.pcall('HMGET', schedule_prefix .. id, 'rev', 'timing_rev', 'state', 'next_run', 'due_at', 'last_run')
  for i = 1, 6 do h[i] = h[i] and quoted(h[i]) or 'null' end  -- what is no hash has none of them
  return '[' .. table.concat(h, ',') .. ',' .. redis.call('EXISTS', template_prefix .. id) .. ']'
end

local found = {}
for i = 3, #ARGV do found[#found + 1] = look(ARGV[i]) end
return '[' .. table.concat(found, ',') .. ']'
