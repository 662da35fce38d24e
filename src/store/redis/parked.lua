-- Shared by the scripts of parked calls, put between the prelude and each of them. What waits and what is claimed end apart from each
-- other, so that the first can be counted.
local calls, waiting, claimed = KEYS[1], KEYS[2], KEYS[3]
local now = clock()

-- Claimed calls have no bound, and Lua cannot unpack more than some thousand values.
local FORGOTTEN_AT_ONCE = 1000

-- Before the name of a claimant who asked more than once; no name has it.
local SHARED = '+'

local function forget_ended(ends)
  repeat
    local over = redis.call('ZRANGE', ends, '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, FORGOTTEN_AT_ONCE)
    if #over > 0 then
      redis.call('HDEL', calls, unpack(over))
      redis.call('ZREM', ends, unpack(over))
    end
  until #over < FORGOTTEN_AT_ONCE
end

-- Claimant and call, or nil. The claimant is empty while it waits for one.
local function find_parked()
  forget_ended(waiting)
  forget_ended(claimed)
  local parked = redis.call('HGET', calls, plan.name)
  if not parked then return nil end
  local cut = string.find(parked, '\n', 1, true)
  return string.sub(parked, 1, cut - 1), string.sub(parked, cut + 1)
end

local function is_full()
  return redis.call('ZCARD', waiting) >= plan.maxWaiting
end

-- All keys go with the last of all calls, also when nobody asks any more. Ends that went before their calls would leave those for ever.
local function expire_keys()
  local last = now
  for _, ends in ipairs({ waiting, claimed }) do
    local latest = redis.call('ZRANGE', ends, -1, -1, 'WITHSCORES')[2]
    if latest then last = math.max(last, tonumber(latest)) end
  end
  for _, key in ipairs({ calls, waiting, claimed }) do redis.call('PEXPIRE', key, whole(last - now)) end
end

-- From now on the call has this claimant, or none, for the time of the plan.
local function keep_parked(claimant, call)
  local from, to = waiting, claimed
  if claimant == '' then from, to = claimed, waiting end
  redis.call('HSET', calls, plan.name, claimant .. '\n' .. call)
  redis.call('ZREM', from, plan.name)
  redis.call('ZADD', to, whole(now + plan.forMs), plan.name)
  expire_keys()
end
