-- Commits or releases a held claim of a mandate and forgets it, so that it is ended once.
-- KEYS: held claims, their ends, register (4).
local held, ends = KEYS[1], KEYS[2]
local register = register_at(3)
local now = clock()
local found = register.held_claim(held, ends, plan.name, now)

if not found then return 0 end
register.finish(cjson.decode(found), plan.how, now)
redis.call('HDEL', held, plan.name)
redis.call('ZREM', ends, plan.name)
return 1
