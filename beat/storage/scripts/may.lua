#!lua flags=no-writes
-- Says which commands this user may do, without doing any of them.
--
-- ARGV[1…] items, each of
-- ITEM[1] words  text  a command, as a list of its words in JSON
--
-- Replies {1, 0, …}, one for each item: 1 if it may, 0 if it may not, or if there is no such command
local allowed = {}
for i = 1, #ARGV do
  local is_known, may = pcall(redis.acl_check_cmd, unpack(cjson.decode(ARGV[i])))
  allowed[i] = is_known and may and 1 or 0
end
return allowed
