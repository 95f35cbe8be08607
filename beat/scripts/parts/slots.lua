-- Who takes up the room of a slot. What nobody watches is no run, and is taken out; what has ended is looked at first.
local has_ended = {finished = true, failed = true, stopped = true, canceled = true}
local function in_slot(key)
  local jobs, ended = {}, 0
  for _, job in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    if not redis.call('ZSCORE', open, job) then
      redis.call('ZREM', key, job)
    else
      jobs[#jobs + 1] = job
      local status = redis.pcall('HGET', job_prefix .. job, 'status')
      if type(status) == 'string' and has_ended[status] then
        redis.call('ZADD', open, 'XX', 0, job)
        ended = ended + 1
      end
    end
  end
  return jobs, ended
end
