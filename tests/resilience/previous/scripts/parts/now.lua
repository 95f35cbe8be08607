-- Redis' own clock, read once: nobody else's decides what is due.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local now_text = to_text(tonumber(time[1]), string.format('.%03d', math.floor(tonumber(time[2]) / 1000)))
