-- KEYS: payments. { clock, state, end of lease, reason, state, end of lease, reason, … }; what a payment lacks is empty.
local found = { whole(clock()) }
for _, key in ipairs(KEYS) do
  local fields = redis.call('HMGET', key, 'state', 'leaseUntil', 'reason')
  found[#found + 1] = fields[1] or ''
  found[#found + 1] = fields[2] or ''
  found[#found + 1] = fields[3] or ''
end
return found
