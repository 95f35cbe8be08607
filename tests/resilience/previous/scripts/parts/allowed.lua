-- What Redis does not let this user do, in words; nil when it lets it do all of that. A command that is refused in the
-- middle of a script would leave half of a step.
local function forbidden(commands)
  for _, command in ipairs(redis.acl_check_cmd and commands or {}) do
    if not redis.acl_check_cmd(unpack(command)) then
      return 'Redis does not let this user do ' .. command[1] .. ' with ' .. command[2]
    end
  end
end
