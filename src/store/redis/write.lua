-- KEYS: payment, open, events, receipts, receipt index. A guarded change of one record with everything that must become true
-- with it; the twin of `advance`, `note` and `release` in table.ts. Without `plan.to` the record stays in its state.
local key, open = KEYS[1], KEYS[2]
local now = clock()
local record = read_hash(key)

if record == nil then
  -- Forgotten by its time to live: nothing is left to look at.
  redis.call('ZREM', open, plan.payId)
  return { 'lost' }
end
if record.owner ~= plan.owner or tonumber(record.fence) ~= plan.fence then return { 'fenced' } end
if record.step == plan.step then return answer('done', now, key) end
if not listed(plan.from, record.state) then return { 'illegal', record.state } end

local fields = plan.facts
fields.state = plan.to or record.state
fields.step = plan.step
fields.changedAt = whole(now)
fields.leaseUntil = '0'
if not plan.final then fields.leaseUntil = lease_end(now, plan.leaseMs) end
if plan.failedDelivery then fields.tries = whole(tonumber(record.tries) + 1) end
if plan.stampSettled then fields.settledAt = whole(now) end

for name, value in pairs(plan.forget) do
  if record[name] ~= nil then fields[name] = value end
end

for _, name in ipairs(plan.required) do
  if fields[name] == nil and record[name] == nil then return { 'corrupt', name } end
end

save(key, fields)
local due = fields.leaseUntil
if due == '0' then due = fields.changedAt end
if plan.final then due = nil end
schedule(key, open, plan.payId, now, record.validBefore, due)
put_receipt(KEYS[4], KEYS[5])
append_events(KEYS[3])
return answer('done', now, key)
