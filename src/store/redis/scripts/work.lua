-- Takes, leaves and frees places in the budget of unpaid work. Members are the names of calls, by
-- the end of their place. KEYS: for each holder its calls under way and its unpaid ones.
local now = clock()

local function put(key, for_ms, name)
  redis.call('ZADD', key, whole(now + for_ms), name)
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
  redis.call('PEXPIRE', key, whole(math.max(1, last - now)))
end

for at = 1, #KEYS, 2 do
  redis.call('ZREM', KEYS[at], plan.name)
  redis.call('ZREMRANGEBYSCORE', KEYS[at], '-inf', whole(now))
  redis.call('ZREMRANGEBYSCORE', KEYS[at + 1], '-inf', whole(now))
end

if plan.command == 'take' then
  for holder, most in ipairs(plan.most) do
    local unpaid = redis.call('ZCARD', KEYS[2 * holder])
    if redis.call('ZCARD', KEYS[2 * holder - 1]) + unpaid >= most then
      if unpaid < most then return { holder, 0 } end
      -- A place is free once so many of the unpaid ones are over.
      local over = redis.call('ZRANGE', KEYS[2 * holder], unpaid - most, unpaid - most, 'WITHSCORES')[2]
      return { holder, math.max(1, over - now) }
    end
  end
  for at = 1, #KEYS, 2 do put(KEYS[at], plan.forMs, plan.name) end
  return { 0, 0 }
end

for at = 2, #KEYS, 2 do
  if plan.command == 'free' then
    redis.call('ZREM', KEYS[at], plan.unpaid)
  elseif plan.unpaid then
    put(KEYS[at], plan.forMs, plan.unpaid)
  end
end
return { 0, 0 }
