-- Claims, ends and declines a task of A2A. A task is a hash: its claimant, a field for each running
-- attempt, and `kept` once the payment has it for good. It expires.
-- KEYS: one task, declined tasks by their end.
local task, declined = KEYS[1], KEYS[2]
local now = clock()

local claimant = redis.call('HGET', task, 'claimant')
if not claimant then
  local ends = redis.call('ZSCORE', declined, plan.name)
  if ends and tonumber(ends) > now then claimant = plan.declined end
end

if plan.command == 'holder' then return claimant or '' end

if plan.command == 'decline' then
  if claimant then return claimant == plan.declined and 1 or 0 end
  redis.call('ZREMRANGEBYSCORE', declined, '-inf', whole(now))
  redis.call('ZADD', declined, whole(now + plan.forMs), plan.name)
  local over = redis.call('ZCARD', declined) - plan.maxDeclined
  if over > 0 then redis.call('ZREM', declined, unpack(redis.call('ZRANGE', declined, 0, over - 1))) end
  local last = redis.call('ZRANGE', declined, -1, -1, 'WITHSCORES')[2]
  redis.call('PEXPIRE', declined, whole(math.max(1, last - now)))
  return 1
end

local attempt = 'attempt:' .. plan.attempt

if plan.command == 'claim' then
  if claimant and claimant ~= plan.claimant then return 0 end
  redis.call('HSET', task, 'claimant', plan.claimant, attempt, '1')
  redis.call('PEXPIRE', task, whole(plan.forMs))
  return 1
end

-- `plan.command` is 'end'.
if claimant ~= plan.claimant then return 0 end
redis.call('HDEL', task, attempt)
if plan.how == 'kept' then
  redis.call('HSET', task, 'kept', '1')
elseif plan.how == 'worthless' or #redis.call('HGETALL', task) == 2 then
  redis.call('DEL', task)
end
return 1
