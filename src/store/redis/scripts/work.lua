-- Takes, leaves and frees places in the budget of unpaid work. Members are the names of calls, by
-- the end of their place. KEYS: for each holder its calls under way and its unpaid ones.
-- ARGV: take, leave or free; the name of the call; the name that it has as an unpaid one, or '';
-- how long its place lasts, milliseconds; to take a place: the most calls of each holder.
local command, name, unpaid_name, for_ms = unpack(ARGV, 1, 4)
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- A number as text without an exponent.
local function whole(number)
  return string.format('%.0f', number)
end

local function put(key, member)
  redis.call('ZADD', key, whole(now + for_ms), member)
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
  redis.call('PEXPIREAT', key, whole(last))
end

for at = 1, #KEYS, 2 do
  redis.call('ZREM', KEYS[at], name)
  redis.call('ZREMRANGEBYSCORE', KEYS[at], '-inf', whole(now))
  redis.call('ZREMRANGEBYSCORE', KEYS[at + 1], '-inf', whole(now))
end

if command == 'take' then
  for holder = 1, #KEYS / 2 do
    local most = tonumber(ARGV[4 + holder])
    local unpaid = redis.call('ZCARD', KEYS[2 * holder])
    if redis.call('ZCARD', KEYS[2 * holder - 1]) + unpaid >= most then
      if unpaid < most then return { holder, 0 } end
      -- A place is free once so many of the unpaid ones are over.
      local over = redis.call('ZRANGE', KEYS[2 * holder], unpaid - most, unpaid - most, 'WITHSCORES')[2]
      return { holder, math.max(1, over - now) }
    end
  end
  for at = 1, #KEYS, 2 do put(KEYS[at], name) end
  return { 0, 0 }
end

for at = 2, #KEYS, 2 do
  if command == 'free' then
    redis.call('ZREM', KEYS[at], unpaid_name)
  elseif unpaid_name ~= '' then
    put(KEYS[at], unpaid_name)
  end
end
return { 0, 0 }
