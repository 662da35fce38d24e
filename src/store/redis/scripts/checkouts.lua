-- Shared by the scripts of checkout operations, put between the prelude and each of them; with them
-- the twin of claim-table.ts. KEYS: the record of the key and, where the operation has one, the
-- lock of its session. Both are a hash of the same fields; what is absent is ''.
local now = clock()

-- State, owner, fencing token, begin, end of the lease, reason and begin of the unknown end, end of
-- the record; fingerprint (record); the key that holds the session and the key of all unknown ends
-- (lock); status (record). The sealed answer, `ct`, is read when it is needed.
local FIELDS = { 'st', 'own', 'tok', 't0', 'ls', 'why', 'since', 'ends', 'fp', 'name', 'of', 'sc' }
local NUMBERS = { tok = true, t0 = true, ls = true, since = true, ends = true }

-- Nil when there is none, or its time is over.
local function read(key)
  if not key then return nil end
  local values = redis.call('HMGET', key, unpack(FIELDS))
  if not values[1] then return nil end
  local found = {}
  for i, field in ipairs(FIELDS) do
    if values[i] and values[i] ~= '' then found[field] = NUMBERS[field] and tonumber(values[i]) or values[i] end
  end
  if found.ends <= now then return nil end
  return found
end

-- Writes every field, and the time to live with it.
local function put(key, kept, sealed)
  local flat = { 'ct', sealed or '' }
  for _, field in ipairs(FIELDS) do
    flat[#flat + 1] = field
    local value = kept[field]
    flat[#flat + 1] = value == nil and '' or NUMBERS[field] and whole(value) or value
  end
  redis.call('HSET', key, unpack(flat))
  redis.call('PEXPIRE', key, whole(kept.ends - now))
end

-- Back to the state before the attempt: deleted when every end was known then.
local function reopen(key, kept)
  if kept.why then
    kept.st = 'U'
    put(key, kept)
  else
    redis.call('DEL', key)
  end
end

local function is_of(kept, hold)
  return kept.own == hold.owner and kept.tok == hold.fence
end

-- The attempt of a record that the store lost: claimed now, with a lease that is over.
local function lost(hold)
  return { st = 'P', fp = hold.fingerprint, own = hold.owner, tok = hold.fence, t0 = now, ls = now }
end

-- The lock, when this attempt holds it.
local function held_lock(hold)
  local lock = read(KEYS[2])
  if lock and lock.name == hold.name and is_of(lock, hold) then return lock end
  return nil
end

local function runs(kept)
  return kept.st == 'P' and kept.ls > now
end

-- Two ends of one session as one: the younger, and whether they belong to one key.
local function joined(why, since, of, later)
  if not why then return later.why, later.since, later.of end
  local same = of == later.of and of or nil
  if since > later.since then return why, since, same end
  return later.why, later.since, same
end
