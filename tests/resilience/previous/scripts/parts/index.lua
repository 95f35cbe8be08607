-- The sets of ids by state: what is not active stands in one of them. An index only: repair makes it anew from the hashes,
-- and one that is no set is no reason to leave a step half done.
local function enlist(id, state)
  for _, each in ipairs({'paused', 'disabled', 'finished', 'retired', 'broken'}) do
    redis.pcall(each == state and 'SADD' or 'SREM', index_prefix .. each, id)
  end
end

local function arrange(ids)  -- among all of them, which Redis keeps in the order of the alphabet
  local key, words = index_prefix .. 'all', {}
  local kind = kind_of(key)
  if kind ~= 'none' and kind ~= 'zset' then redis.call('DEL', key) end
  for _, id in ipairs(ids) do words[#words + 1], words[#words + 2] = 0, id end
  redis.call('ZADD', key, unpack(words))
end

local function strike(id) redis.pcall('ZREM', index_prefix .. 'all', id) end
