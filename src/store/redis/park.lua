-- KEYS: parked calls, their ends. ARGV[2]: the text of the call. Keeps a call under a name until its time is over; the same name again
-- replaces one. Over the bound those that would end first give way.
local calls, ends = KEYS[1], KEYS[2]
local now = clock()

unpark_ended(calls, ends, now)
unpark(calls, ends, { plan.name })
local over = redis.call('ZCARD', ends) + 1 - plan.maxParked
if over > 0 then unpark(calls, ends, redis.call('ZRANGE', ends, 0, over - 1)) end

redis.call('HSET', calls, plan.name, '\n' .. ARGV[2])
redis.call('ZADD', ends, whole(now + plan.forMs), plan.name)

-- Both keys go with the last of their calls, also when nobody parks any more.
local last = redis.call('ZRANGE', ends, -1, -1, 'WITHSCORES')
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, whole(tonumber(last[2]) - now)) end
return 1
