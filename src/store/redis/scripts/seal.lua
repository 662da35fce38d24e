-- Writes a checkpoint and what it seals, if it is the next one, and drops what it trims. KEYS: lines
-- that wait, sealed. ARGV, from 2 on: the checkpoint, its versions, and lines that wait from now on.
-- Returns 1, or 0 for a number that is not the next one.
local lines, sealed = KEYS[1], KEYS[2]
local bounds = redis.call('HMGET', sealed, 'first', 'last')
local first, last = tonumber(bounds[1] or 1), tonumber(bounds[2] or 0)
if plan.number ~= last + 1 then return 0 end
local name = whole(plan.number)
redis.call('HSET', sealed, 'last', name, 'c' .. name, ARGV[2], 'v' .. name, ARGV[3])
redis.call('XDEL', lines, unpack(plan.positions))
for number = first, plan.trimmed do redis.call('HDEL', sealed, 'c' .. whole(number), 'v' .. whole(number)) end
redis.call('HSET', sealed, 'first', whole(math.max(first, plan.trimmed + 1)))
for at = 4, #ARGV do redis.call('XADD', lines, '*', 'l', ARGV[at]) end
return 1
