-- KEYS: the owner of a session. The twin of `ownershipOf` in sessions.ts.
local now = clock()
local found = read_hash(KEYS[1])

if not found or tonumber(found.ends) <= now then return { 'none' } end
if found.owner ~= plan.owner then return { 'other' } end
if tonumber(found.ends) - now < plan.keepMs * 15 / 16 then
  redis.call('HSET', KEYS[1], 'ends', whole(now + plan.keepMs))
  redis.call('PEXPIRE', KEYS[1], whole(plan.keepMs))
end
return { 'own' }
