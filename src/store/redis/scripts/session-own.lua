-- KEYS: the owner of a session. The first one stays. The twin of `ownSession` in sessions.ts.
local now = clock()
local found = read_hash(KEYS[1])

if found and tonumber(found.ends) <= now then found = nil end
if found and found.owner ~= plan.owner then return { 'other' } end
local ends = math.max(found and tonumber(found.ends) or 0, now + plan.keepMs)
redis.call('HSET', KEYS[1], 'owner', plan.owner, 'ends', whole(ends))
redis.call('PEXPIRE', KEYS[1], whole(ends - now))
return { 'done' }
