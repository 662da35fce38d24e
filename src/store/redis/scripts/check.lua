-- Writes and reads back: a read-only replica or a server out of memory still answers a PING. Begins
-- the epoch of the register of mandates where there is none. KEYS: ready, register (4).
redis.call('SET', KEYS[1], plan.token, 'PX', whole(plan.keepMs))
local epoch = register_at(2).keep_epoch(plan.known, plan.first, clock())
return { redis.call('GET', KEYS[1]), whole(epoch.born), whole(epoch.open_from) }
