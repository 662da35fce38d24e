-- Makes a running lease last longer; the twin of `renew` in table.ts. A record in a final state has
-- no lease. KEYS: payment, open.
local key, open = KEYS[1], KEYS[2]
local now = clock()
local held = redis.call('HMGET', key, 'owner', 'fence', 'leaseUntil')

if held[1] ~= plan.owner or tonumber(held[2]) ~= plan.fence then return 0 end
if (tonumber(held[3]) or 0) <= now then return 0 end

local fields = {}
lease(fields, now, plan.leaseMs, 0)
save(key, fields)
list_work(open, plan.payId, fields.dueAt)
return 1
