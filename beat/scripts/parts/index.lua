-- The sets of ids by state: what is not active stands in one of them. An index only: repair makes it anew from the hashes.
local function enlist(id, state)
  for _, each in ipairs({'paused', 'disabled', 'finished', 'retired', 'broken'}) do
    redis.call(each == state and 'SADD' or 'SREM', index_prefix .. each, id)
  end
end
