-- KEYS: ready, register (4). Writes and reads back; a read-only replica or a server out of memory would still answer a PING. Sees to it
-- that the register of mandates has an epoch.
redis.call('SET', KEYS[1], plan.token, 'PX', whole(plan.keepMs))
local epoch = register_at(2).sight(plan.known, plan.first, clock())
return { redis.call('GET', KEYS[1]), whole(epoch.born), whole(epoch.open_from) }
