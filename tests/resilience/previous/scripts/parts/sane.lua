-- What keeps a schedule's hash from being used, in words; nil when nothing does. An error in the middle of a script is
-- not rolled back, so every value that a later line could choke on is looked at before the first write.
local function kind_of(key) return redis.call('TYPE', key)['ok'] end

local counts = {[false] = true}  -- a page has the same few numbers again and again
local function is_count(value)
  if counts[value] == nil then counts[value] = #value <= 15 and string.find(value, '^%d+$') ~= nil end
  return counts[value]
end

local numbers, digits = {}, {}  -- to read a number, or to write one, takes as long as a small command
local function number_of(text)
  if not numbers[text] then numbers[text] = tonumber(text) end
  return numbers[text]
end

local function digits_of(number)
  if not digits[number] then digits[number] = string.format('%.0f', number) end
  return digits[number]
end

local function grown(version)  -- by one; what is no number begins anew
  return version and is_count(version) and digits_of(number_of(version) + 1) or '1'
end

local function is_moved(key, next_run)  -- whether an operator has said when this tick is due, be it before its time
  return next_run and redis.call('HGET', key, 'moved') == next_run
end

local function problem(rev, next_run, due_at, run_count, skip_count, key)
  if not rev or rev == '' then return 'rev is missing' end
  if not string.find(rev, '^%w+$') then return 'rev is not a digest' end
  if not is_count(run_count) then return 'run_count is not a number: ' .. string.sub(run_count, 1, 40) end
  if not is_count(skip_count) then return 'skip_count is not a number: ' .. string.sub(skip_count, 1, 40) end
  if next_run and not to_ms(next_run) then return 'next_run is not a time: ' .. string.sub(next_run, 1, 40) end
  if due_at and not to_ms(due_at) then return 'due_at is not a time: ' .. string.sub(due_at, 1, 40) end
  if next_run and to_ms(next_run) < 0 then return 'next_run lies before 1970: ' .. next_run end
  if next_run and due_at and to_ms(due_at) < to_ms(next_run) and not is_moved(key, next_run) then return 'due_at lies before next_run' end
  if not next_run ~= not due_at then return (next_run and 'due_at' or 'next_run') .. ' is missing' end
  return nil
end
