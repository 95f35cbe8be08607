-- What live beats declare: a registry each, by its digest, which begins with the application.
local registries
local function live()
  if not registries then
    registries = kind_of(announcements) == 'zset' and redis.call('ZRANGEBYSCORE', announcements, now, '+inf') or {}
  end
  return registries
end

local function announced_as(id, digest)  -- the rev, if that registry has the schedule
  local key = announced_prefix .. digest
  local declared = kind_of(key) == 'hash' and redis.call('HGET', key, id)
  return declared and string.match(declared, '^[^\t]*')
end

local function is_announced(id, rev, app)  -- whether one has it; if a rev or an application is named, just so, and that one
  for _, digest in ipairs(live()) do
    local found = announced_as(id, digest)
    if found and (not rev or found == rev) and (not app or string.sub(digest, 1, #app + 1) == app .. '.') then return true end
  end
  return false
end
