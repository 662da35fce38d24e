-- Returns { clock, ids } of the due work, the longest overdue first. KEYS: open.
local now = whole(clock())
return { now, redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', whole(plan.offset), whole(plan.limit)) }
