-- Who takes up the room of a slot. What nobody watches is no run, and is taken out; what has ended is looked at first.
local has_ended = {finished = true, failed = true, stopped = true, canceled = true}
local function in_slot(key)  -- the jobs, how many have ended and are not closed, how many of those may still be running
  local jobs, ended, alive = {}, 0, 0
  local found = redis.call('ZRANGE', key, 0, -1)
  local watched = #found > 0 and redis.call('ZMSCORE', open, unpack(found)) or {}
  for i, job in ipairs(found) do
    if not watched[i] then
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
