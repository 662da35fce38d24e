-- KEYS: open. { clock, ids } of the work whose time has come, the longest overdue first.
local now = whole(clock())
return { now, redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', whole(plan.offset), whole(plan.limit)) }
