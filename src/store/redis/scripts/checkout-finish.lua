-- ARGV[2]: the sealed answer.
local record = read(KEYS[1]) or lost(plan)

if not is_of(record, plan) then return { 'fenced' } end
if record.st == 'D' then
  -- Changes nothing, but gives a WAIT on this connection something to wait for.
  if plan.again then redis.call('HSET', KEYS[1], 'st', 'D') end
  return { 'done' }
end
record.st, record.sc = 'D', whole(plan.status)
record.why, record.since = nil, nil
record.ends = now + plan.keepMs
put(KEYS[1], record, ARGV[2])

local lock = held_lock(plan)
if lock then
  local doubtful = plan.refused and lock.why and lock.of ~= plan.name
  if not doubtful then lock.why = nil end
  reopen(KEYS[2], lock)
end
return { 'done' }
