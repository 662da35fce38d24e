-- Writes a checkpoint and what it seals, if it is the next one, and drops what it trims. KEYS: lines
-- that wait, sealed, receipts. ARGV, from 2 on: the checkpoint, its versions, and a line for each of
-- `carried`, which waits from now on where the receipt still has that text.
-- Returns 1, or 0 for a number that is not the next one.
local lines, sealed, receipts = KEYS[1], KEYS[2], KEYS[3]
local bounds = redis.call('HMGET', sealed, 'first', 'last')
local first, last = tonumber(bounds[1] or 1), tonumber(bounds[2] or 0)
if plan.number ~= last + 1 then return 0 end
local name = whole(plan.number)
redis.call('HSET', sealed, 'last', name, 'c' .. name, ARGV[2], 'v' .. name, ARGV[3])
redis.call('XDEL', lines, unpack(plan.positions))
for number = first, plan.trimmed do redis.call('HDEL', sealed, 'c' .. whole(number), 'v' .. whole(number)) end
redis.call('HSET', sealed, 'first', whole(math.max(first, plan.trimmed + 1)))
for at, of in ipairs(plan.carried) do
  local text = redis.call('HGET', receipts, of.id)
  if text and redis.sha1hex(text) == of.sha1 then redis.call('XADD', lines, '*', 'l', ARGV[at + 3]) end
end
return 1
