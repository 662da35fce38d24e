-- Reserves the uses of a call that pays nothing, and holds the claim under the name of the call. A
-- repetition for the same name changes nothing.
-- KEYS: held claims, their ends, register (4). ARGV[2]: a claim.
local held, ends = KEYS[1], KEYS[2]
local register = register_at(3)
local now = clock()

if register.held_claim(held, ends, plan.name, now) then
  -- Writes what is there already, so that a WAIT on this connection waits for it.
  if plan.again then redis.call('HSET', held, plan.name, ARGV[2]) end
  return { 'reserved' }
end

local claim = cjson.decode(ARGV[2])
local refusal = register.reserve(claim, now)
if refusal then return { 'refused', refusal } end

register.sweep(ends, held, now)
local last = register.store_time(claim.onceUntil, claim.at, now)
for _, use in ipairs(claim.open) do last = math.max(last, register.store_time(use['until'], claim.at, now)) end
redis.call('HSET', held, plan.name, ARGV[2])
redis.call('ZADD', ends, whole(last), plan.name)
register.expire_with_last(ends, held, now)
return { 'reserved' }
