-- KEYS: payment, open. Claims an authorization or takes over one whose lease ended; the twin of `reserve` in table.ts.
local key, open = KEYS[1], KEYS[2]
local now = clock()
local record = read_hash(key)

local function claim(fields)
  fields.leaseUntil = lease_end(now, plan.leaseMs)
  fields.changedAt = whole(now)
  save(key, fields)
  local due = fields.leaseUntil
  if due == '0' then due = fields.changedAt end
  schedule(key, open, plan.payId, now, plan.terms.validBefore, due)
  -- Time takes the records away, but not their entries in the work list.
  redis.call('ZREMRANGEBYSCORE', open, '-inf', whole(now - plan.workRetentionMs))
  return answer('run', now, key)
end

if record == nil then
  local fields = plan.terms
  fields.validBefore = whole(fields.validBefore)
  fields.state = 'reserved'
  fields.owner = plan.owner
  fields.fence = '1'
  fields.step = plan.owner
  fields.tries = '0'
  fields.reservedAt = whole(now)
  return claim(fields)
end

plan.terms.validBefore = record.validBefore
if record.bind ~= plan.terms.bind then return answer('used', now, key) end
if not listed(plan.openStates, record.state) then return answer('ended', now, key) end

local lease = tonumber(record.leaseUntil)
if record.owner == plan.owner then
  if lease > now then return answer('run', now, key) end
  return claim({})
end
if lease > now then return answer('busy', now, key) end

local tries = tonumber(record.tries)
if lease ~= 0 and listed(plan.deliveringStates, record.state) then tries = tries + 1 end
return claim({ owner = plan.owner, fence = whole(tonumber(record.fence) + 1), tries = whole(tries) })
