-- What Redis does not let this user do, in words; nil when it lets it do all of that. A command that is refused in the
-- middle of a script would leave half of a step; rights.py writes the lists.
local function forbidden(lists)  -- each has commands, with a blank between, and the words that follow them
  for _, list in ipairs(redis.acl_check_cmd and lists or {}) do
    for command in string.gmatch(list[1], '%S+') do
      if not redis.acl_check_cmd(command, unpack(list, 2)) then
        return 'Redis does not let this user do ' .. command .. ' with ' .. list[#list]
      end
    end
  end
end
