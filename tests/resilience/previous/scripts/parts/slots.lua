-- Who takes up the room of a slot. What nobody watches is no run, and is taken out; what has ended is looked at first.
local has_ended = {finished = true, failed = true, stopped = true, canceled = true}
local function in_slot(key)  -- the jobs, how many have ended and are not closed, how many of those may still be running
  local jobs, ended, alive = {}, 0, 0
  local found, watched = redis.call('ZRANGE', key, 0, -1), {}
  for i, job in ipairs(found) do
    if i % 1000 == 1 then watched = redis.call('ZMSCORE', open, unpack(found, i, math.min(i + 999, #found))) end  -- Lua takes no 8,000 at once
    if not watched[(i - 1) % 1000 + 1] then
      redis.call('ZREM', key, job)
    else
      jobs[#jobs + 1] = job
      local status = redis.pcall('HGET', job_prefix .. job, 'status')
      if type(status) == 'string' and has_ended[status] then
        redis.call('ZADD', open, 'XX', 0, job)
        ended = ended + 1
        alive = alive + (status == 'canceled' and 1 or 0)  -- what is cancelled while it runs goes on
      end
    end
  end
  return jobs, ended, alive
end
