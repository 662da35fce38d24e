-- KEYS: payments. { clock, state, end of lease, state, end of lease, … }; of a payment that is forgotten both are empty.
local found = { whole(clock()) }
for _, key in ipairs(KEYS) do
  local fields = redis.call('HMGET', key, 'state', 'leaseUntil')
  found[#found + 1] = fields[1] or ''
  found[#found + 1] = fields[2] or ''
end
return found
