-- Returns { end, ids } of the work that is due until that end, the longest overdue first. KEYS: open.
local until_ms = whole(clock() + plan.withinMs)
return { until_ms, redis.call('ZRANGE', KEYS[1], '-inf', until_ms, 'BYSCORE', 'LIMIT', whole(plan.offset), whole(plan.limit)) }
