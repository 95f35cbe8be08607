-- The way of nearly every tick: nothing special about it, and all as it was prepared. What is any different is left to `decide`,
-- which would do the same with it, only slower: it asks of each item what this asks once of all that are alike.
local alike = {}
local function look_at_form(kind, id, tick, due, next, next_due, job, queue, by)  -- what the items of a page have in common
  local due_ms = is_count(due) and number_of(due)
  alike = {kind = kind, tick = tick, due = due, next = next, next_due = next_due, queue = queue, by = by}
  if kind ~= 'fire' or next == '' or jobs_exist or outbox_wrong or string.find(queue, '\n', 1, true)
    or not makes_sense(kind, tick, due, next, next_due, job, queue, 'back', '0', '', '', '', '', '')
    or due_ms ~= to_ms(tick) or due_ms > now or queue_problem(id, job, queue) then return end
  alike.is_plain = true
  alike.entry = '","by":' .. quoted(by) .. ',"late_ms":' .. digits_of(now - due_ms) .. ',"n":'
  alike.record = '","tick":"' .. tick .. '","by":' .. quoted(by) .. ',"queue":' .. quoted(queue) .. enqueued
end

local function fire_plain(i)  -- a code, and words; nothing if it is not plain
  local kind, id, rev, tick, due, next, next_due, job, queue, run, by = unpack(ARGV, i, i + least - 1)
  if tick ~= alike.tick or next ~= alike.next or queue ~= alike.queue or due ~= alike.due or next_due ~= alike.next_due
    or by ~= alike.by or kind ~= alike.kind then
    look_at_form(kind, id, tick, due, next, next_due, job, queue, by)
  end
  if not alike.is_plain or not ours[id] or rev == '' or not string.find(job, '^[%w_-]+$') then return end  -- no lock has an id that needs quotes
  local key = schedule_prefix .. id
  local h = redis.pcall('HMGET', key, 'state', 'rev', 'next_run', 'due_at', 'run_count', 'skip_count', 'kept', 'result_ttl',
    'failure_ttl', 'created_at')
  if h[1] ~= 'active' or h[2] ~= rev or h[3] ~= tick or h[4] ~= tick or h[8] or h[9] or not h[10]
    or not is_count(h[5]) or not is_count(h[6]) then return end
  local t = redis.pcall('HMGET', template_prefix .. id, 'meta', 'ttl', 'retries_left', 'origin')
  if not t[1] or t[2] or t[3] then return end
  local total = digits_of(number_of(h[5] or '0') + 1)
  local line = '{"type":"enqueued","tick":"' .. tick .. '","job":"' .. job .. alike.entry .. total .. signed
  local kept = append_verdict(id, line, h[7])  -- the first write: if the ledger is no list, it is refused and nothing has happened
  if not kept then return no_ledger(id, key) end
  enqueue(id, job, queue, 'back', t[1] .. run, nil, '', t[4])
  open_run(job, '{"schedule":"' .. id .. alike.record .. total .. ',"life":' .. quoted(h[10]) .. '}')
  tell(id, 'enqueued', tick, job, token, line)
  move(id, key, next, number_of(next_due), '', 'last_run', tick, 'last_enqueued', now_text, 'last_job', job, 'run_count', total,
    'kept', digits_of(kept))
  return 'OK', ''
end
