-- KEYS: payment, open. Takes off the work list what time has taken away; a record that came back meanwhile stays on it.
if redis.call('HGET', KEYS[1], 'state') then return 0 end
return redis.call('ZREM', KEYS[2], plan.payId)
