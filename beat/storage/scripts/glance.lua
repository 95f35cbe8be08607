#!lua flags=no-writes
-- Tells a few fields of many schedules: what thousands are sorted by, or looked through for.
--
-- ARGV[1] schedule_prefix  text  followed by an id: the hash of that schedule
-- ARGV[2] fields           text  their names, parted by blanks
-- ARGV[3…] items, each of
-- ITEM[1] id  text  a schedule
--
-- Replies a list as JSON, for a list of lists is slow to read: for each item the values of those fields, null where there
-- is none
local schedule_prefix, fields = ARGV[1], ARGV[2]

-- include quoted

local names, told = {}, {}
for name in string.gmatch(fields, '%S+') do names[#names + 1] = name end
for i = 3, #ARGV do
  local h = redis.pcall('HMGET', schedule_prefix .. ARGV[i], unpack(names))
  for n = 1, #names do h[n] = h[n] and quoted(h[n]) or 'null' end  -- what is no hash has none of them
  told[#told + 1] = '[' .. table.concat(h, ',', 1, #names) .. ']'
end
return '[' .. table.concat(told, ',') .. ']'
