-- ARGV[2]: the sealed answer that cannot be opened, or nothing. Answers with a kind of `Claimed`
-- and what belongs to it. Only `granted` is a write that waits for a replica (replication.ts).
local record, lock = read(KEYS[1]), read(KEYS[2])

local function span(kind, kept)
  return { kind, math.max(0, now - kept.t0), kept.ls - now }
end

local function is_held(kept)
  return kept.st == 'P' and kept.name == plan.name and kept.own == plan.owner
end

if record then
  if record.fp ~= plan.fingerprint then return { 'conflict' } end
  if record.st == 'D' then
    local sealed = redis.call('HGET', KEYS[1], 'ct')
    if sealed ~= ARGV[2] then return { 'completed', tonumber(record.sc), sealed } end
  end
  if record.own ~= plan.owner and runs(record) then return span('in_flight', record) end
end
if lock and runs(lock) and not is_held(lock) then
  return span(lock.name == plan.name and 'in_flight' or 'session_busy', lock)
end

local taken = { st = 'P', fp = plan.fingerprint, own = plan.owner, tok = 1, t0 = now, ls = now + plan.leaseMs }
taken.ends = math.max(record and record.ends or 0, taken.ls + plan.keepMs)
if record then
  local ours = not KEYS[2] or (lock and is_held(lock))
  if record.st == 'P' and record.own == plan.owner and ours then
    taken.tok, taken.why, taken.since = record.tok, record.why, record.since
  else
    taken.tok = record.tok + 1
    if record.st == 'U' then
      taken.why, taken.since = record.why, record.since
    else
      taken.why, taken.since = record.st == 'D' and 'unopened' or 'lease_expired', record.t0
    end
  end
end
put(KEYS[1], taken)

local function granted(kept, other_key)
  if not kept.why then return { 'granted', kept.tok } end
  return { 'granted', kept.tok, kept.why, math.max(0, now - kept.since), other_key and 1 or 0 }
end

if not KEYS[2] then return granted(taken, false) end
local held = { st = 'P', name = plan.name, own = plan.owner, tok = taken.tok, t0 = taken.t0, ls = taken.ls }
held.ends = math.max(lock and lock.ends or 0, taken.ends)
if lock then
  held.why, held.since, held.of = lock.why, lock.since, lock.of
  if lock.st == 'P' and not is_held(lock) then
    local expired = { why = 'lease_expired', since = lock.t0, of = lock.name }
    held.why, held.since, held.of = joined(held.why, held.since, held.of, expired)
  end
end
if taken.why then
  local own = { why = taken.why, since = taken.since, of = plan.name }
  held.why, held.since, held.of = joined(held.why, held.since, held.of, own)
end
put(KEYS[2], held)
return granted(held, held.why and held.of ~= plan.name)
