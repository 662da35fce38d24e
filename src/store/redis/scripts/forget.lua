-- Takes an expired record off a list, unless it was reserved again meanwhile. KEYS: payment, list.
if redis.call('HGET', KEYS[1], 'state') then return 0 end
return redis.call('ZREM', KEYS[2], plan.payId)
