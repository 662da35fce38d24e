-- KEYS: ready. Writes and reads back; a read-only replica or a server out of memory would still answer a PING.
redis.call('SET', KEYS[1], plan.token, 'PX', whole(plan.keepMs))
return redis.call('GET', KEYS[1])
