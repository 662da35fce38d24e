-- Returns { clock, state, end of lease, reason, state, … }; what a payment lacks is empty.
-- KEYS: payments.
local found = { whole(clock()) }
for _, key in ipairs(KEYS) do
  local fields = redis.call('HMGET', key, 'state', 'leaseUntil', 'reason')
  found[#found + 1] = fields[1] or ''
  found[#found + 1] = fields[2] or ''
  found[#found + 1] = fields[3] or ''
end
return found
