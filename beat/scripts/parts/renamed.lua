-- A schedule may have another id by now. Its old ids say where it went, for a while.
local function renamed(id)  -- the ids that it has had since; the last of them is where it is
  local names = {}
  for _ = 1, 10 do
    local to = kind_of(schedule_prefix .. id) == 'hash' and redis.call('HGET', schedule_prefix .. id, 'renamed_to')
    if not to then break end
    names[#names + 1], id = to, to
  end
  return names
end
