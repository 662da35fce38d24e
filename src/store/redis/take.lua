-- KEYS: parked calls, their ends. Gives a parked call to the first who asks for it. It stays for its taker for a moment, so that he may
-- ask again when the reply was lost; to all others it is gone.
local calls, ends = KEYS[1], KEYS[2]
local now = clock()

unpark_ended(calls, ends, now)
local parked = redis.call('HGET', calls, plan.name)
if not parked then return false end
local cut = string.find(parked, '\n', 1, true)
local taker, call = string.sub(parked, 1, cut - 1), string.sub(parked, cut + 1)
if taker == plan.taker then return call end
if taker ~= '' then return false end
redis.call('HSET', calls, plan.name, plan.taker .. parked)
redis.call('ZADD', ends, 'LT', whole(now + plan.takenMs), plan.name)
return call
