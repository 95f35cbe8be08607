-- The way of nearly every tick: nothing special about it, and all as it was prepared. What is any different is left to `decide`,
-- which would do the same with it, only slower: it asks of each item what this asks once of all that share it.
local usual, usual_meta  -- how the meta of nearly every job begins: as it is written, and as it is
local function meta_of(text, rev)  -- nothing if it is not that of this rev
  if usual and text == rev .. usual then return usual_meta end
  local written = string.sub(text, 1, #rev) == rev and string.match(string.sub(text, #rev + 1), '^ (%x+)$')
  if not written or #written % 2 == 1 then return end
  usual, usual_meta = ' ' .. written, string.gsub(written, '..', function(two) return string.char(tonumber(two, 16)) end)
  return usual_meta
end

local function look_at_crowd(crowd, id, job)
  local due, queue = is_count(crowd.due) and number_of(crowd.due), crowd.queue
  crowd.is_plain = crowd.next ~= '' and not outbox_wrong and not string.find(crowd.before .. crowd.after, '[^%w_-]') and not string.find(queue, '\n', 1, true)
    and makes_sense('fire', crowd.tick, crowd.due, crowd.next, crowd.next_due, job, queue, 'back', '0', '', '', '', '', '')
    and due == to_ms(crowd.tick) and due <= now and not queue_problem(id, job, queue)
  if not crowd.is_plain then return end
  crowd.entry = '","by":' .. quoted(crowd.by) .. ',"late_ms":' .. digits_of(now - due) .. ',"n":'
  crowd.record = '","tick":"' .. crowd.tick .. '","by":' .. quoted(crowd.by) .. ',"queue":' .. quoted(queue) .. enqueued
  crowd.next_at = number_of(crowd.next_due)
  crowd.next_due_at = due_text(crowd.next, crowd.next_at)
end

local function fire_plain(i, crowd)  -- a code, and words; nothing if it is not plain, and nothing has happened
  local id, rev, run = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local job = crowd.before .. id .. crowd.after
  if crowd.is_more then return end
  if crowd.is_plain == nil then look_at_crowd(crowd, id, job) end
  if not crowd.is_plain or not ours[id] or rev == '' then return end  -- no lock has an id that needs quotes
  local key, hash, tick = schedule_prefix .. id, job_prefix .. job, crowd.tick
  local h = redis.pcall('HMGET', key, 'state', 'rev', 'next_run', 'due_at', 'run_count', 'skip_count', 'kept', 'job_meta', 'created_at')
  if h[1] ~= 'active' or h[2] ~= rev or h[3] ~= tick or h[4] ~= tick or not h[8] or not h[9]
    or not is_count(h[5]) or not is_count(h[6]) then return end
  local meta = meta_of(h[8], rev)
  if not meta then return end
  if redis.pcall('COPY', template_prefix .. id, hash) ~= 1 then return end  -- there is no template, or such a job already
  local total = digits_of(number_of(h[5] or '0') + 1)
  local line = '{"type":"enqueued","tick":"' .. tick .. '","job":"' .. job .. crowd.entry .. total .. signed
  local written = redis.pcall('HSET', hash, 'created_at', stamp, 'enqueued_at', stamp, 'meta', meta .. run)
  local kept = type(written) == 'number' and append_verdict(id, line, h[7])
  if not kept then  -- the template is no hash, or the ledger no list: each was refused, and `decide` says so
    redis.call('DEL', hash)
    return
  end
  push(job, crowd.queue, 'back')
  open_run(job, '{"schedule":"' .. id .. crowd.record .. total .. ',"life":' .. quoted(h[9]) .. '}')
  tell(id, 'enqueued', line)
  redis.call('HSET', key, 'next_run', crowd.next, 'due_at', crowd.next_due_at, 'last_run', tick, 'last_enqueued', now_text, 'last_job', job,
    'run_count', total, 'kept', digits_of(kept))
  scores[id], gone[id] = crowd.next_at, nil
  return 'OK', ''
end
