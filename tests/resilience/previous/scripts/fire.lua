#!lua
-- Gives ticks their verdict. For each item: guards that only read, then compare-and-set, then everything at once (job,
-- queue, state, index, ledger); no error is possible after an item's first write. One code per item, never an error.
-- A plain tick alone writes its job before its last guard, and takes it back if that is refused.
--
-- KEYS[1] due_index        zset   id → due_at in ms
-- KEYS[2] queues           set    RQ's set of queues
-- KEYS[3] announcements    zset   digest → when it lapses, in ms, of each live registry
-- KEYS[4] open             zset   job id → when to look next, in ms: runs whose outcome is not known
-- KEYS[5] records          hash   job id → what a run is, as JSON
-- KEYS[6] events           stream every verdict, for whoever reads it
-- KEYS[7] waiting_slots    zset   slot → when to look next, in ms: those for which ticks wait
-- KEYS[8] groups           hash   group → skip or wait when it is full, how many may run, how many may wait
-- ARGV[1] schedule_prefix  text   followed by an id: the hash of that schedule
-- ARGV[2] template_prefix  text   followed by an id: the fields of its job, as RQ writes them
-- ARGV[3] lock_prefix      text   followed by an id: its lock
-- ARGV[4] announced_prefix text   followed by a digest: id → rev, what that registry declares
-- ARGV[5] job_prefix       text   followed by a job id: RQ's hash
-- ARGV[6] runs_prefix      text   followed by an id: its ledger
-- ARGV[7] token            text   what our locks hold: the name of this beat
-- ARGV[8] history_limit    count  how many verdicts a ledger keeps
-- ARGV[9] events_limit     count  about how many events are kept
-- ARGV[10] running_prefix  text   followed by a slot: the jobs that take up its room
-- ARGV[11] waiting_prefix  text   followed by a slot: the ticks that wait for room
-- ARGV[12] request_prefix  text   followed by a job id: that somebody asked for it, and it was enqueued
-- ARGV[13] index_prefix    text   followed by a state: the ids of all that are in it
-- ARGV[14] queue_prefix    text   followed by the name of a queue: its key
-- ARGV[15] cycle         ms     how often a scheduler looks for due ticks, and how soon at the earliest what is rejected is retried
-- ARGV[16] misfire_limit ms     how late a tick may fire, if its schedule does not say so itself
-- ARGV[17] early         ms     how long before it is due a tick is claimed
-- ARGV[18…] items, each after the number of its words. Most fire, and share most of their words: 0 stands before the words of a
--           crowd (tick, due, next, next_due, queue, by, slot, max_runs, group, and what stands before and after its id in the job),
--           and -1 before members of the first crowd, -2 of the second …: how many, and of each one id, rev and run; their
--           other words are nothing
-- ITEM[1]  kind       word   fire, skip (ticks pass by), admit (a tick has waited: it needs no lock, and moves nothing), pass (it
--                            has waited, and passes by), manual (somebody asked for a run: as admit), resume (a pause ends, and
--                            with it the stretch of ticks that it held), release (nothing was decided), quarantine (cannot be read)
-- ITEM[2]  id         text   the schedule
-- ITEM[3]  rev        text   the definition that was prepared
-- ITEM[4]  tick       time   the tick that was prepared; for skip the first of the stretch; for manual nothing, or which
--                            tick of the past it makes up for; for resume the next one
-- ITEM[5]  due        ms     not before
-- ITEM[6]  next       time   the following tick, or nothing when the schedule ends
-- ITEM[7]  next_due   ms     when that is due
-- ITEM[8]  job        text   the id of the job
-- ITEM[9]  queue      text   the key of its queue; of several, each on its own line: it is broadcast to all of them
-- ITEM[10] run        bytes  the end of the job's meta; of a broadcast their lengths, a line end, and one for each queue
-- ITEM[11] by         word   for fire, admit and manual: scheduler, catchup, follows, manual or backfill; for resume: `disabled` where
--                            its code has switched it off meanwhile
-- ITEM[12] at         word   front or back
-- ITEM[13] number     count  for skip and resume: how many ticks; for manual: how many seconds the request is remembered
-- ITEM[14] error      text   what went wrong with earlier attempts, or nothing
-- ITEM[15] last       time   for skip and resume: the last of the stretch; for manual: the next tick, if it is to pass; for admit
--                            and pass: the job that it follows, or nothing
-- ITEM[16] reason     text   for skip and pass: why; for resume: the end that the pause must have, nothing if an operator ends it
-- ITEM[17] slot       text   nothing where runs may overlap, or: skip, wait or replace, how many may run, how many may
--                            wait, and `cleared` when those that have ended were closed just now
-- ITEM[18] max_runs   count  how many ticks become jobs, after which the schedule has finished; nothing for no end; for resume: the
--                            version that it must have; nothing for any
-- ITEM[19] data       bytes  for manual: the function and other arguments than the schedule's, as RQ writes them, or nothing
-- ITEM[20] why        text   how its queue was chosen, or why it is skipped, in words; or nothing
-- ITEM[21] group      text   nothing, or: the group whose room it needs, too; and `cleared`, or `forced` where it needs none
-- ITEM[22] expects    text   what must be so, or the item was decided in vain: lines of a schedule, a field of it and its value
-- ITEM[23] uses       text   which queues it has used, from now on; or nothing
--
-- Replies {now in ms, OK, {which item, code, words}, …}, with those items that are not OK; the first one is 1, and 0 means
-- all of them. The lock goes with the schedule's last item, on every reply but FENCED, EARLY and ENDED.
--   OK        done
--   SKIPPED   no room for it, and none to wait, or it passes by: skipped; words: the reason
--   WAITS     no room for it: it waits; words: the job that has the room, or nothing if it waited already
--   ENDED     no room for it, but runs have ended of which nobody has taken note: close them, or let in who waits, and
--             send this again as cleared; words: how many have ended
--   FULL      of admit and manual: there is no room; words: the job that has it, or nothing
--   BADARG    the item makes no sense; the schedule stays hidden for as long as the lock would have lasted
--   GONE      there is no such schedule
--   BADTYPE   a key has another type, or the Redis user may not use it; retried as `retry` says, as is BADSTATE
--   BADSTATE  the hash of the schedule, or the template of its jobs, cannot be used
--   FENCED    the lock is not ours any more
--   STALE     next_run is not this tick: it has its verdict; words: last_job, ours if only the reply was lost
--   OTHERS    a live beat announces the definition that we cannot read: left to it
--   CHANGED   the definition is not the one that was prepared, or what was expected is not so
--   INACTIVE  the schedule is paused, disabled …; words: its state
--   EARLY     not due by Redis' clock, or this script has looked at enough runs in slots; words: the milliseconds to wait
--   CONFLICT  of resume: it has another version; words: which
local due_index, queues, announcements, open, records, events, waiting_slots, groups = unpack(KEYS)
local schedule_prefix, template_prefix, lock_prefix, announced_prefix, job_prefix, runs_prefix = unpack(ARGV, 1, 6)
local token, history_limit, events_limit, running_prefix, waiting_prefix = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local request_prefix, index_prefix, queue_prefix = ARGV[12], ARGV[13], ARGV[14]
local cycle, misfire_limit, early = ARGV[15], ARGV[16], ARGV[17]

-- include instants
-- include now
-- include sane
-- include quoted
-- include outbox
-- include ledger
-- include words
-- include slots
-- include index
-- include announced
-- include acted
-- include allowed
-- include retry

local first, width = 18, 23
local stamp = to_text(tonumber(time[1]), string.format('.%06d', tonumber(time[2])))
local signed = ',"at":"' .. now_text .. '","beat":' .. quoted(token) .. '}'
local enqueued = ',"enqueued":"' .. now_text .. '","n":'
local kinds, pushes, scores, gone, ours, last_code, barred, opened, noted, is_new = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
local outbox_wrong, jobs_exist
local nobody, more = {}, {'last_job', 'manual_count', 'skips'}  -- what `decide` asks of a schedule if there is anything special about a tick
local retries = {}  -- when each schedule is looked at again that Redis rejects
local starts, ids, crowds = {}, {}, {}  -- where each item begins, whose it is, and what one of a crowd shares with others
local wanted = {fire = true, skip = true, admit = true, pass = true, manual = true, resume = true, release = true, quarantine = true}

local function kind_once(key)  -- the keys that many items share are looked at once
  kinds[key] = kinds[key] or kind_of(key)
  return kinds[key]
end

local sizes = {}  -- of slots and lines, asked once: only this script changes them meanwhile
local function size_of(key)  -- false if it is no sorted set
  if sizes[key] == nil then
    local size = redis.pcall('ZCARD', key)
    sizes[key] = type(size) == 'number' and size
  end
  return sizes[key]
end

local function join(key, score, member)
  local added = redis.call('ZADD', key, score, member)
  if sizes[key] then sizes[key] = sizes[key] + added end
end

local function leave(key, member)
  local removed = redis.call('ZREM', key, member)
  if sizes[key] then sizes[key] = sizes[key] - removed end
end

local function read_page()  -- where the items are; false if they are torn
  local at, shared, each, known = first, 11, 3, {}
  while at <= #ARGV do
    local words = number_of(ARGV[at])
    local crowd, number = words and words < 0 and known[-words], 1
    if words == 0 then
      if at + shared > #ARGV then return false end
      crowd = {}
      crowd.tick, crowd.due, crowd.next, crowd.next_due, crowd.queue, crowd.by, crowd.slot, crowd.max_runs, crowd.group, crowd.before,
        crowd.after = unpack(ARGV, at + 1, at + shared)
      crowd.is_more = crowd.slot ~= '' or crowd.max_runs ~= '' or crowd.group ~= ''
      known[#known + 1] = crowd
      at = at + 1 + shared
      if number_of(ARGV[at] or '') ~= -#known then return false end  -- nobody is of a crowd that is named last
    else
      if crowd then
        at, number, words = at + 1, is_count(ARGV[at + 1] or '') and number_of(ARGV[at + 1]) or 0, each
      end
      if number < 1 or not crowd and words ~= width or at + number * words > #ARGV then return false end
      for n = 1, number do
        local i, k = at + 1 + (n - 1) * words, #starts + 1
        starts[k], ids[k], crowds[k] = i, ARGV[crowd and i or i + 1], crowd
      end
      at = at + 1 + number * words
    end
  end
  return true
end

local function look_at_page()  -- what many items share, or can be asked at once: locks, jobs, the keys of the outbox
  local locks, hashes = {}, {}
  for n, i in ipairs(starts) do
    locks[n] = lock_prefix .. ids[n]
    local crowd = crowds[n]
    if not crowd then hashes[#hashes + 1] = job_prefix .. ARGV[i + 7]
    elseif crowd.is_more then hashes[#hashes + 1] = job_prefix .. crowd.before .. ids[n] .. crowd.after end
  end
  if #ids == 0 then return end
  for n, holder in ipairs(redis.call('MGET', unpack(locks))) do ours[ids[n]] = holder == token end  -- what is no string is no lock
  local there = #hashes > 0 and redis.pcall('EXISTS', unpack(hashes))  -- what Redis does not let us do is told for each queue
  jobs_exist = there and (type(there) ~= 'number' or there > 0)
  for key, wanted in pairs({[open] = 'zset', [records] = 'hash', [events] = 'stream'}) do
    local kind = kind_once(key)
    if kind ~= 'none' and kind ~= wanted then outbox_wrong = key .. ' is a ' .. kind .. ', not a ' .. wanted end
  end
end

local function makes_sense(kind, tick, due, next, next_due, job, queue, at, number, last, slot, max_runs, group, reason)
  if not wanted[kind] or group ~= '' and not string.find(group, '^[%w_-]+ ?%a*$') then return false end
  if kind == 'release' or kind == 'quarantine' then return true end
  local t, n = to_ms(tick), to_ms(next)
  if kind == 'manual' then
    t = to_ms(last ~= '' and last or tick)
    if not is_count(number) or not t and (tick ~= '' or last ~= '' or next ~= '') then return false end
  elseif not t then return kind == 'resume' and tick == '' and next == '' and number == '0' end  -- what follows another has no next tick
  if not is_count(due) then return false end
  if next ~= '' and not (n and (n > t or kind == 'resume' and n == t) and is_count(next_due)) then return false end
  if kind == 'resume' and number == '0' then return true end
  if kind == 'pass' then return reason ~= '' end
  if kind == 'skip' or kind == 'resume' then return is_count(number) and tonumber(number) > 0 and to_ms(last) ~= nil and to_ms(last) >= t end
  if slot ~= '' and not string.find(slot, '^%a+ %d+ %d+ ?%a*$') or max_runs ~= '' and not is_count(max_runs) then return false end
  return job ~= '' and queue ~= '' and (at == 'front' or at == 'back')
end

local function queue_problem(id, job, queue, alone)  -- alone: nobody has asked whether its job exists
  if barred[queue] == nil then
    local hash = job_prefix .. job
    barred[queue] = forbidden({{'type', hash}, {'exists', hash}, {'copy', template_prefix .. id, hash, 'replace'}, {'hset', hash, '', ''},
      {'expire', hash, 1}, {'del', hash}, {'type', queue}, {'rpush', queue, ''}, {'lpush', queue, ''}, {'type', queues}, {'sadd', queues, ''}}) or false
  end
  if barred[queue] then return barred[queue] end
  local kind = (jobs_exist or alone) and kind_of(job_prefix .. job) or 'none'
  if kind ~= 'none' and kind ~= 'hash' then return job_prefix .. job .. ' is a ' .. kind end
  kind = kind_once(queue)
  if kind ~= 'none' and kind ~= 'list' then return queue .. ' is a ' .. kind .. ', not a queue' end
  kind = kind_once(queues)
  if kind ~= 'none' and kind ~= 'set' then return queues .. ' is a ' .. kind .. ', not a set' end
end

local function skipped(id, tick, last, count, reason, behind, tally, why, after)  -- the verdict in ledger and outbox; false if there is no ledger
  local total = digits_of(number_of(tally.skip_count or '0') + count)
  local line = '{"type":"skipped","tick":"' .. tick .. '","last":"' .. last .. '","count":' .. count .. ',"reason":' .. quoted(reason)
    .. (behind ~= '' and ',"behind":' .. quoted(behind) or '') .. (why and why ~= '' and ',"why":' .. quoted(why) or '')
    .. (after and after ~= '' and ',"after":' .. quoted(after) or '') .. ',"n":' .. total .. signed
  local kept = append_verdict(id, line, tally.kept)
  if not kept then return false end
  tally.has_grown, tally.skip_count, tally.kept, tally.skips = true, total, digits_of(kept), one_more(tally.skips, reason, count)
  tell(id, 'skipped', line)
  return true
end

local function counts_of(tally)  -- as the schedule's hash is to have them, if any tick was skipped
  if tally.has_grown then return 'skip_count', tally.skip_count, 'kept', tally.kept, 'skips', tally.skips end
end

local function move(id, key, next, next_due, error, ...)
  if error ~= '' then redis.call('HSET', key, 'last_error', error) end
  if next == '' then
    local state = redis.call('HEXISTS', key, 'follows') == 1 and 'active' or 'finished'  -- its last tick by the clock, and then others
    redis.call('HDEL', key, 'next_run', 'due_at')
    redis.call('HSET', key, 'state', state, ...)
    enlist(id, state)
    scores[id], gone[id] = nil, true
  else
    redis.call('HSET', key, 'next_run', next, 'due_at', due_text(next, next_due), ...)
    scores[id], gone[id] = next_due, nil
  end
end

local function rank(id, key, state, due_at)  -- its place in the index, if nothing is decided
  local awake = state == 'paused' and to_ms(redis.call('HGET', key, 'pause_until') or '')  -- a pause with an end has one
  if state == 'active' and due_at then scores[id] = to_ms(due_at) elseif awake then scores[id] = awake else gone[id] = true end
end

local last_open, since = 0, digits_of(now)  -- Redis takes longer to write a number than to find its digits
local function open_run(job, record)
  last_open = last_open + 2
  opened[last_open - 1], opened[last_open] = since, job
  noted[last_open - 1], noted[last_open] = job, record
end

local function write_opened()  -- once a page, unless somebody asks who is in a slot; a thousand words at a time: Lua takes no 8,000 at once
  for n = 1, last_open, 1000 do
    redis.call('ZADD', open, unpack(opened, n, math.min(n + 999, last_open)))
    redis.call('HSET', records, unpack(noted, n, math.min(n + 999, last_open)))
  end
  last_open = 0
end

local function push(job, queue, at)
  pushes[queue] = pushes[queue] or {front = {}, back = {}}
  local jobs = pushes[queue][at]
  jobs[#jobs + 1] = job
end

local function enqueue(id, job, queue, at, meta, ttl, data, origin)
  local key = job_prefix .. job
  redis.call('COPY', template_prefix .. id, key, 'REPLACE')
  redis.call('HSET', key, 'created_at', stamp, 'enqueued_at', stamp, 'meta', meta)
  if queue ~= queue_prefix .. (origin or '') then redis.call('HSET', key, 'origin', string.sub(queue, #queue_prefix + 1)) end
  if data ~= '' then redis.call('HSET', key, 'data', data) end
  if ttl then redis.call('EXPIRE', key, ttl) end
  push(job, queue, at)
end

local has_new = {}  -- slots with runs that this page has opened, and that may not be written yet
local function take_room(key, job)
  join(key, since, job)
  has_new[key] = has_new[key] or is_new[job]
end

local function note(id, slot, group, job, queue, tick, by, number, created_at, retries, result_ttl, failure_ttl, part)
  local record = '{"schedule":' .. quoted(id) .. ',"tick":"' .. tick .. '","by":' .. quoted(by) .. ',"queue":' .. quoted(queue)
    .. enqueued .. number .. ',"life":' .. quoted(created_at or '') .. (group ~= '' and ',"group":' .. quoted(group) or '') .. part
    .. (retries and is_count(retries) and ',"retries":' .. digits_of(number_of(retries)) or '')
    .. (result_ttl and is_count(result_ttl) and ',"result_ttl":' .. digits_of(number_of(result_ttl)) or '')
    .. (failure_ttl and is_count(failure_ttl) and ',"failure_ttl":' .. digits_of(number_of(failure_ttl)) or '') .. '}'
  open_run(job, record)
  is_new[job] = true
  if slot ~= '' then take_room(running_prefix .. id, job) end
  if group ~= '' then take_room(running_prefix .. '@' .. group, job) end
end

local function later(id, key, code, words)  -- what cannot be enqueued says why, and is retried
  if redis.call('HGET', key, 'last_error') ~= words then redis.call('HSET', key, 'last_error', words) end
  return code, words
end

local function no_ledger(id, key)
  return later(id, key, 'BADTYPE', runs_prefix .. id .. ' is a ' .. kind_of(runs_prefix .. id) .. ', not a list')
end

local function stale(key) return 'STALE', redis.call('HGET', key, 'last_job') or '' end

local function is_enough(count, asked, max_runs)  -- whether so many jobs are all there are to be; those that somebody asked for are none
  return max_runs ~= '' and count - (asked and is_count(asked) and number_of(asked) or 0) >= number_of(max_runs)
end

local function finishes(id, count, asked, max_runs)  -- the same, with those that wait
  return max_runs ~= '' and is_enough(count + size_of(waiting_prefix .. id), asked, max_runs)
end

local function holds(expects)  -- whether all that was expected is so
  for id, field, value in string.gmatch(expects, '(%S+) (%S+) (%S*)\n') do
    local found = redis.pcall('HGET', schedule_prefix .. id, field)
    if (type(found) == 'string' and found or '') ~= value then return false end
  end
  return true
end

-- include hall
-- include room
local function resume(id, key, state, tick, next, next_due, number, last, untl, tally)
  if untl ~= '' then  -- it ends by itself, unless somebody has made it longer
    if redis.call('HGET', key, 'pause_until') ~= untl then return 'CHANGED', '' end
    if to_ms(untl) > now then return 'EARLY', tostring(to_ms(untl) - now) end
  end
  local passes = number ~= '0'
  if passes and not skipped(id, tick, last, number, 'paused', '', tally) then return no_ledger(id, key) end
  redis.call('HDEL', key, 'pause_until', 'pause_reason', 'paused_by', 'paused_at', 'pause_scope')
  redis.call('HSET', key, 'state', state, 'updated_at', now_text, 'version', grown(redis.call('HGET', key, 'version')),
    unpack(passes and {'last_skip', last, counts_of(tally)} or {}))
  enlist(id, state)
  acted(id, key, 'resumed', tick, untl, '', token)
  if tick == '' then  -- it follows another, and stands in no index
    scores[id], gone[id] = nil, true
  elseif next ~= tick then
    move(id, key, next, number_of(next_due), '', 'updated_at', now_text)
  else  -- the tick that was next still is
    local due = to_ms(redis.call('HGET', key, 'due_at'))
    if due <= now and now < to_ms(tick) then  -- somebody had moved it to a time that fell into the pause: it has its own again
      due = number_of(next_due)
      redis.call('HDEL', key, 'moved', 'moved_by')
      redis.call('HSET', key, 'due_at', due_text(tick, due))
    end
    scores[id], gone[id] = due, nil
  end
  if state ~= 'active' then scores[id], gone[id] = nil, true end
  return 'OK', ''
end

local function not_asked(item, state, now_rev, next_run, last)  -- why a run that somebody asked for is not enqueued: a code, and words
  local request = request_prefix .. item.job
  local wrong = forbidden({{'exists', request}, {'set', request, '', 'EX', 1}})
  if wrong then return 'BADTYPE', wrong end
  if redis.call('EXISTS', request) == 1 then return 'STALE', item.job end
  if now_rev ~= item.rev or last ~= '' and next_run ~= last then return 'CHANGED', '' end
  if last ~= '' and state ~= 'active' then return 'INACTIVE', state or '' end
  if item.room then
    local count, newest = look_at_slot(item, 'cleared')
    if count >= item.room then return 'FULL', newest end
  end
  if item.group ~= '' and not item.forced then
    local full, newest = look_at_group(item, 'cleared')
    if full then return 'FULL', newest end
  end
end

local function places_of(queue)  -- of a broadcast, the queues; nothing for one queue
  if not string.find(queue, '\n', 1, true) then return end
  local found = {}
  for each in string.gmatch(queue, '[^\n]+') do found[#found + 1] = each end
  return found
end

local function blocks_of(run, places)  -- the ends of the metas of a broadcast; nothing if there are not as many as queues
  local lengths, rest = string.match(run, '^([%d ]+)\n(.*)$')
  local found, at = {}, 1
  for each in string.gmatch(lengths or '', '%d+') do
    found[#found + 1] = string.sub(rest, at, at + each - 1)
    at = at + each
  end
  return #found == #places and found or nil
end

local function item_of(id, rev, tick, next, next_due, job, error, by, slot, max_runs, group, kind, last, reason, why, run_count, places, expects, last_job, asked)
  local overlap, room, waits = string.match(slot, '^(%a+) (%d+) (%d+)')
  local name, mark = string.match(group, '^(%S+) ?(%a*)$')
  local in_line = kind == 'admit' or kind == 'pass'
  return {id = id, rev = rev, tick = tick, next = next, next_due = next_due, job = job, error = error, by = by, slot = slot, max_runs = max_runs,
    overlap = overlap, room = tonumber(room), waits = tonumber(waits), group = name or '', forced = mark == 'forced', kind = kind,
    after = in_line and last or '', reason = reason, why = why, run_count = number_of(run_count or '0'), expects = expects, jobs = places and #places or 1,
    last_job = last_job, asked = asked}
end

local function decide(i, crowd)
  local kind, id, rev, tick, due, next, next_due, job, queue, run, by, at, number, error, last, reason, slot, max_runs, data, why, group, expects, uses = unpack(ARGV, i, i + width - 1)
  if crowd then
    kind, id, rev, run, tick, due = 'fire', ARGV[i], ARGV[i + 1], ARGV[i + 2], crowd.tick, crowd.due
    next, next_due, queue, by, job = crowd.next, crowd.next_due, crowd.queue, crowd.by, crowd.before .. id .. crowd.after
    slot, max_runs, group = crowd.slot, crowd.max_runs, crowd.group
    at, number, error, last, reason, data, why, expects, uses = 'back', '0', '', '', '', '', '', '', ''
  end
  local sense
  if crowd then sense = crowd.makes_sense end
  if sense == nil then sense = makes_sense(kind, tick, due, next, next_due, job, queue, at, number, last, slot, max_runs, group, reason) end
  if crowd then crowd.makes_sense = sense end
  if not sense then return 'BADARG', '' end
  local key, admits, manual = schedule_prefix .. id, kind == 'admit' or kind == 'pass', kind == 'manual'
  local is_more = kind ~= 'fire' or slot ~= '' or group ~= '' or max_runs ~= ''
  local h = redis.pcall('HMGET', key, 'state', 'rev', 'next_run', 'due_at', 'run_count', 'skip_count', 'kept', 'result_ttl',
    'failure_ttl', 'created_at', unpack(is_more and more or nobody))
  local found = not h[1] and kind_of(key)  -- what has a state is a hash
  if found == 'none' then gone[id] = true return 'GONE', '' end
  if found and found ~= 'hash' then return 'BADTYPE', key .. ' is a ' .. found end
  local state, now_rev, next_run, due_at, run_count, skip_count, kept, result_ttl, failure_ttl, created_at, last_job, asked, skips = unpack(h)
  local as_prepared = rev ~= '' and now_rev == rev and next_run == tick and due_at == tick and number_of(due) == to_ms(tick)
  local wrong = not (as_prepared and is_count(run_count) and is_count(skip_count))
    and problem(now_rev, next_run, due_at, run_count, skip_count, key)
  if wrong then return 'BADSTATE', wrong end
  local tally = is_more and {skip_count = skip_count, kept = kept, skips = skips}
  local meta, ttl, retries_left, origin, places, blocks, item, place
  if outbox_wrong and kind ~= 'release' and kind ~= 'quarantine' then return later(id, key, 'BADTYPE', outbox_wrong) end
  if kind == 'fire' or admits or manual then
    local t = redis.pcall('HMGET', template_prefix .. id, 'meta', 'ttl', 'retries_left', 'origin')
    found = not t[1] and kind_of(template_prefix .. id)
    if found and found ~= 'hash' then
      return later(id, key, 'BADSTATE', template_prefix .. id .. (found == 'none' and ' is missing' or ' is a ' .. found))
    end
    meta, ttl, retries_left, origin = unpack(t)
    if ttl and not (#ttl <= 10 and string.find(ttl, '^[1-9]%d*$')) then
      return later(id, key, 'BADSTATE', 'the ttl of the job is not a number')
    end
    places = places_of(queue)
    blocks = places and blocks_of(run, places)
    if places and not blocks then return 'BADARG', '' end
    if admits or manual or slot ~= '' or group ~= '' then
      item = item_of(id, rev, tick, next, next_due, job, error, by, slot, max_runs, group, kind, last, reason, why, run_count, places, expects,
        last_job, asked)
      place, group = group, item.group
    end
    wrong = not places and queue_problem(id, job, queue, crowd and not crowd.is_more)
    for n, place in ipairs(places or nobody) do wrong = wrong or queue_problem(id, job .. '_s' .. n - 1, place, true) end
    wrong = wrong or (item or max_runs ~= '') and misplaced(id, group, admits or manual)
    if wrong then return later(id, key, 'BADTYPE', wrong) end
    if group ~= '' and not item.forced and not limits_of(group) then
      return later(id, key, 'BADSTATE', 'nobody says how many runs the group ' .. group .. ' may have: HSET ' .. groups .. ' ' .. group .. ' "wait 5"')
    end
  end
  if admits then
    local code, words = not_admitted(item, key, state, now_rev, tally)
    if code then return code, words end
  elseif manual then
    local code, words = not_asked(item, state, now_rev, next_run, last)
    if code then return code, words end
  elseif kind == 'resume' then
    if ours[id] then rank(id, key, state, due_at) end
    if (next_run or '') ~= tick then return stale(key) end
    if now_rev ~= rev then return 'CHANGED', '' end
    if state ~= 'paused' then return 'INACTIVE', state or '' end
    local version = max_runs ~= '' and (redis.call('HGET', key, 'version') or '')
    if version and version ~= max_runs then return 'CONFLICT', version end
    return resume(id, key, by == 'disabled' and by or 'active', tick, next, next_due, number, last, reason, tally)
  elseif not ours[id] then
    if tick ~= '' and next_run ~= tick then return stale(key) end  -- ours, perhaps, if its reply was lost
    return 'FENCED', ''
  else
    rank(id, key, state, due_at)
    if kind == 'release' then return 'OK', '' end
    if kind == 'quarantine' then
      if now_rev ~= rev then return 'CHANGED', '' end
      if state ~= 'active' then return 'INACTIVE', state or '' end
      if is_announced(id, redis.call('HGET', key, 'declared_rev') or rev) then return 'OTHERS', '' end
      redis.call('HSET', key, 'state', 'broken', 'last_error', error, 'updated_at', now_text)
      enlist(id, 'broken')
      gone[id] = true
      return 'OK', ''
    end
    if next_run ~= tick then return stale(key) end
    if now_rev ~= rev then return 'CHANGED', '' end
    if state ~= 'active' then return 'INACTIVE', state or '' end
    if number_of(due) > now then return 'EARLY', tostring(due - now) end
    if due_at ~= tick and to_ms(due_at) > math.max(now, number_of(due)) and is_moved(key, tick) then  -- an operator was here since
      return 'CHANGED', ''
    end
    if expects ~= '' and not holds(expects) then return 'CHANGED', '' end
    if kind == 'skip' then
      if not skipped(id, tick, last, number, reason, '', tally, why) then return no_ledger(id, key) end
      move(id, key, next, number_of(next_due), error, 'last_skip', last, counts_of(tally))
      return 'OK', ''
    end
    if finishes(id, number_of(run_count or '0'), asked, max_runs) then  -- it was lowered, or ticks wait that nobody counted
      if not skipped(id, tick, tick, 1, 'finished', '', tally) then return no_ledger(id, key) end
      move(id, key, '', 0, error, 'last_skip', tick, counts_of(tally))
      return 'SKIPPED', 'finished'
    end
    if item then
      if lookable < 0 then return 'EARLY', '0' end  -- before any write: this script has looked at enough runs
      if is_in_line(item) then
        move(id, key, next, number_of(next_due), error, 'last_skip', tick)
        return 'WAITS', ''
      end
      local cleared = string.find(slot .. place, ' cleared', 1, true) and 'cleared' or ''
      if item.room then
        local count, newest, ended, unseen = look_at_slot(item, cleared)
        if unseen then return 'ENDED', tostring(ended) end
        if count >= item.room then return stand_in_line(item, key, newest, tally) end
      end
      if group ~= '' then
        local full, newest, ended, unseen = look_at_group(item, cleared)
        if unseen then return 'ENDED', tostring(ended) end
        if full then return stand_in_line(item, key, newest, tally, group) end
      end
    end
  end
  local total = digits_of(number_of(run_count or '0') + 1)
  local line = '{"type":"enqueued","tick":' .. (tick == '' and 'null' or '"' .. tick .. '"') .. ',"job":' .. quoted(job) .. ',"by":' .. quoted(by)
    .. (admits and last ~= '' and ',"after":' .. quoted(last) or '') .. (places and ',"shards":' .. #places or '')
    .. (why ~= '' and (places and '' or ',"queue":' .. quoted(string.sub(queue, #queue_prefix + 1))) .. ',"why":' .. quoted(why) or '')
    .. ',"late_ms":' .. (manual and '0' or digits_of(now - number_of(due))) .. ',"n":' .. total .. signed
  kept = append_verdict(id, line, kept)  -- the first write: if the ledger is no list, it is refused and nothing has happened
  if not kept then return no_ledger(id, key) end
  for n, place in ipairs(places or nobody) do  -- one job for each, all in this step
    local each = job .. '_s' .. n - 1
    enqueue(id, each, place, at, (meta or '') .. blocks[n], ttl, data, origin)
    note(id, slot, group, each, place, tick, by, total, created_at, retries_left, result_ttl, failure_ttl,
      ',"of":' .. quoted(job) .. ',"shard":' .. n - 1 .. ',"shards":' .. #places)
  end
  if not places then
    enqueue(id, job, queue, at, (meta or '') .. run, ttl, data, origin)
    note(id, slot, group, job, queue, tick, by, total, created_at, retries_left, result_ttl, failure_ttl, '')
  end
  tell(id, 'enqueued', line)
  if uses ~= '' then redis.call('HSET', key, 'uses', uses) end
  if admits then
    leave_line(id, group, member_of(item))
    local before = redis.call('HGET', key, 'last_run')
    redis.call('HSET', key, 'last_run', to_ms(before) and to_ms(before) > to_ms(tick) and before or tick, 'last_enqueued', now_text,
      'last_job', job, 'run_count', total, 'kept', kept)
    if last ~= '' and state == 'active' and is_enough(number_of(total), asked, max_runs) then
      redis.call('HSET', key, 'state', 'finished')
      enlist(id, 'finished')
    end
    return 'OK', ''
  end
  if manual then
    redis.call('SET', request_prefix .. job, now_text, 'EX', number)
    redis.call('HSET', key, 'last_enqueued', now_text, 'last_job', job, 'run_count', total, 'manual_count', grown(asked), 'kept', kept)
    if last ~= '' then  -- it takes the place of the next tick
      tally.kept = digits_of(kept)
      skipped(id, last, last, 1, 'instead', job, tally)
      move(id, key, next, number_of(next_due), '', 'last_skip', last, counts_of(tally))
    end
    return 'OK', ''
  end
  if finishes(id, number_of(total), asked, max_runs) then next = '' end
  move(id, key, next, number_of(next_due), error, 'last_run', tick, 'last_enqueued', now_text, 'last_job', job, 'run_count', total,
    'kept', digits_of(kept))
  return 'OK', ''
end

-- include plain
local function decided(i, crowd)
  if crowd then
    local code, words = fire_plain(i, crowd)
    if code then return code, words end
  end
  return decide(i, crowd)
end

local function broke(error)  -- an unforeseen error in one item: the others of the page go on
  return 'BADSTATE', type(error) == 'table' and error.err or tostring(error)
end

local function retry(id, i, crowd)  -- the first of a chain that is rejected says when: those after it depend on it
  if retries[id] then return end
  local kind, due, next_due = 'fire', ARGV[i + 4], ARGV[i + 6]
  if crowd then due, next_due = crowd.due, crowd.next_due else kind = ARGV[i] end
  if kind == 'resume' then due = digits_of(to_ms(ARGV[i + 15]) or now) end  -- when the pause ended
  retries[id] = retry_at(schedule_prefix .. id, is_count(due) and number_of(due) or nil, is_count(next_due) and number_of(next_due) or nil)
end

local function step_aside(i)  -- a tick that cannot be let in keeps nobody of its group waiting: its own line knows it
  local id, group, after = ARGV[i + 1], string.match(ARGV[i + 20], '^[%w_-]+'), ARGV[i + 14]
  if not group then return end
  sizes[waiting_prefix .. '@' .. group] = nil
  redis.pcall('ZREM', waiting_prefix .. '@' .. group, id .. ' ' .. ARGV[i + 3] .. ' ' .. ARGV[i + 10] .. (after ~= '' and ' ' .. after or ''))
  redis.pcall('ZADD', waiting_slots, retry_at(schedule_prefix .. id), id)
end

if not read_page() then return {now, 'OK', {0, 'BADARG', 'not a whole number of items'}} end
local a_key, a_lock, a_ledger = schedule_prefix .. 'x', lock_prefix .. 'x', runs_prefix .. 'x'
local barred_here = forbidden({{'type', a_key}, {'hmget', a_key, 'x'}, {'hget', a_key, 'x'}, {'hset', a_key, 'x', ''}, {'hdel', a_key, 'x'}, {'hexists', a_key, 'x'},
  {'hmget', template_prefix .. 'x', 'x'}, {'mget', a_lock}, {'del', a_lock}, {'zadd', due_index, 0, 'x'}, {'zrem', due_index, 'x'},
  {'lpush', a_ledger, ''}, {'rpop', a_ledger}, {'ltrim', a_ledger, 0, 1}, {'zadd', open, 0, 'x'}, {'hset', records, 'x', ''},
  {'xadd', events, '*', 'x', ''}, {'zcard', running_prefix .. 'x'}, {'zrange', running_prefix .. 'x', 0, -1}, {'zadd', running_prefix .. 'x', 0, 'x'},
  {'zrem', running_prefix .. 'x', 'x'}, {'zcard', waiting_prefix .. 'x'}, {'zadd', waiting_prefix .. 'x', 0, 'x'}, {'zrem', waiting_prefix .. 'x', 'x'},
  {'zadd', waiting_slots, 0, 'x'}, {'zrem', waiting_slots, 'x'}, {'zscore', open, 'x'}, {'zmscore', open, 'x'}, {'zadd', open, 'XX', 0, 'x'},
  {'zscore', running_prefix .. 'x', 'x'}, {'zscore', waiting_prefix .. 'x', 'x'}, {'zrange', waiting_prefix .. 'x', 0, -1},
  {'del', waiting_prefix .. 'x'}, {'zmscore', waiting_prefix .. 'x', 'x'}, {'hget', groups, 'x'}, {'hget', job_prefix .. 'x', 'x'}, {'lrange', a_ledger, 0, -1},
  {'sadd', index_prefix .. 'x', 'x'}, {'srem', index_prefix .. 'x', 'x'}})
if barred_here then return redis.error_reply('NOPERM ' .. barred_here) end
local replies, locks = {now, 'OK'}, {}
look_at_page()
for n, i in ipairs(starts) do  -- a chain is several items of one schedule: its lock goes with the last of them
  local id, kind = ids[n], crowds[n] and 'fire' or ARGV[i]
  local fine, code, words = pcall(decided, i, crowds[n])
  if not fine then code, words = broke(code) end
  local stays = kind == 'admit' or kind == 'pass' or kind == 'manual' and ARGV[i + 14] == ''
  if code ~= 'OK' then replies[#replies + 1] = {n, code, words} end
  if stays then
    scores[id] = nil  -- it has no lock, and moves nothing
    if code == 'GONE' and kind ~= 'manual' then
      redis.pcall('DEL', waiting_prefix .. id)
      redis.pcall('ZREM', waiting_slots, id)
    elseif kind ~= 'manual' and (code == 'BADTYPE' or code == 'BADSTATE' or code == 'BADARG') then
      step_aside(i)
    end
  elseif last_code[id] ~= 'ENDED' then last_code[id] = code end
  if not stays and (code == 'BADTYPE' or code == 'BADSTATE') then retry(id, i, crowds[n]) end
end
for id, code in pairs(last_code) do
  if code == 'FENCED' or code == 'EARLY' or code == 'ENDED' then
    scores[id], gone[id] = nil, nil
  elseif ours[id] then
    locks[#locks + 1] = lock_prefix .. id
    if retries[id] then scores[id], gone[id] = retries[id], nil end
  end
end
for queue, ends in pairs(pushes) do  -- a thousand at a time: Lua takes no 8,000 at once
  for n = 1, #ends.back, 1000 do redis.call('RPUSH', queue, unpack(ends.back, n, math.min(n + 999, #ends.back))) end
  for n = 1, #ends.front, 1000 do redis.call('LPUSH', queue, unpack(ends.front, n, math.min(n + 999, #ends.front))) end
  redis.call('SADD', queues, queue)
end
write_opened()
if kind_once(due_index) == 'zset' or kind_once(due_index) == 'none' then
  local moved, removed = {}, {}
  for id, score in pairs(scores) do moved[#moved + 1], moved[#moved + 2] = digits_of(score), id end
  for id in pairs(gone) do removed[#removed + 1] = id end
  if #moved > 0 then redis.call('ZADD', due_index, unpack(moved)) end
  if #removed > 0 then redis.call('ZREM', due_index, unpack(removed)) end
end
if #locks > 0 then redis.call('DEL', unpack(locks)) end
return replies
