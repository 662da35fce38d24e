local kept = read(KEYS[1])
local record = kept or lost(plan)

if not is_of(record, plan) or record.st == 'D' then return 0 end
if record.st == 'U' then return 1 end
record.st, record.why, record.since, record.ends = 'U', plan.why, record.t0, now + plan.keepMs
put(KEYS[1], record)

local lock = held_lock(plan)
if not kept and KEYS[2] and not read(KEYS[2]) then
  lock = lost(plan)
  lock.fp, lock.name = nil, plan.name
end
if lock then
  local own = { why = record.why, since = record.since, of = plan.name }
  lock.why, lock.since, lock.of = joined(lock.why, lock.since, lock.of, own)
  lock.st, lock.ends = 'U', record.ends
  put(KEYS[2], lock)
end
return 1
