-- Claims an authorization, or takes over one whose lease ended; the twin of `reserve` in table.ts.
-- KEYS: payment, open, refusals, with a mandate the register (4), and with an issued token the key
-- of the payment that showed it first.
-- ARGV, from 2 on: the terms but `tokenDigest`, as field, value, field, value.
local key, open = KEYS[1], KEYS[2]
local now = clock()
local record = read_fields(key, {
  'bind', 'state', 'keyDigest', 'tokenDigest', 'owner', 'fence', 'leaseUntil', 'tries', 'validBefore'
})
local issued = plan.token ~= nil and plan.token.kind == 'issued'

-- The first payment that shows a token has it. Returns the payId of that payment, or false.
local function note_token()
  if not issued then return false end
  if redis.call('SET', KEYS[#KEYS], plan.payId, 'NX', 'PX', whole(plan.token.forMs)) then return plan.payId end
  return redis.call('GET', KEYS[#KEYS])
end

local function work_until(due_at)
  list_work(open, plan.payId, due_at)
  -- Records expire, their entries in the work list do not.
  redis.call('ZREMRANGEBYSCORE', open, '-inf', whole(now - plan.workRetentionMs))
end

local function claim(fields)
  lease(fields, now, plan.leaseMs, 0)
  fields.changedAt = whole(now)
  save(key, fields)
  keep_alive(key, now, record.validBefore, plan.retentionMs)
  work_until(fields.dueAt)
  note_token()
  return answer('granted', now, key)
end

if record == nil then
  local refused = plan.proof and redis.call('HGET', KEYS[3], plan.proof)
  if refused then
    local until_ms, reason = string.match(refused, '^(%d+) (.*)$')
    if tonumber(until_ms) > now then return { 'refused', reason } end
  end
  if plan.claim then
    local refusal = register_at(4).reserve(cjson.decode(plan.claim).claim, now)
    if refusal then return { 'mandate', refusal } end
  end
  local shown_for = note_token()
  local lease_fields = {}
  lease(lease_fields, now, plan.leaseMs, 0)
  local at = whole(now)
  local fields = { unpack(ARGV, 2) }
  local function set(name, value)
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  -- A key counts alone, and so does a token that is worthless or of another payment.
  local counts = plan.token == nil or (issued and shown_for == plan.payId)
  if plan.tokenDigest and counts and not plan.hasKey then set('tokenDigest', plan.tokenDigest) end
  set('state', 'reserved')
  set('owner', plan.owner)
  set('fence', '1')
  set('leaseUntil', lease_fields.leaseUntil)
  set('dueAt', lease_fields.dueAt)
  set('step', plan.owner)
  set('tries', '0')
  set('reservedAt', at)
  set('changedAt', at)
  redis.call('HSET', key, unpack(fields))
  keep_alive(key, now, plan.validBefore, plan.retentionMs)
  work_until(lease_fields.dueAt)
  -- The caller has the terms: what it cannot know is the clock and whose the token is.
  return { 'granted', at, shown_for }
end

if record.bind ~= plan.bind then return answer('conflict', now, key) end
if not listed(plan.openStates, record.state) then return answer('completed', now, key) end
local secret = record.keyDigest and 'keyDigest' or 'tokenDigest'
if record[secret] ~= nil and record[secret] ~= plan[secret] then return answer('guarded', now, key) end

local lease_until = tonumber(record.leaseUntil)
if record.owner == plan.owner then
  if lease_until > now then
    -- Writes what is there already, so that a WAIT on this connection waits for it.
    if plan.again then redis.call('HSET', key, 'owner', plan.owner) end
    return answer('granted', now, key)
  end
  return claim({})
end
if lease_until > now then
  if plan.longestMs and lease_until - now > plan.longestMs then
    local cut = {}
    lease(cut, now, plan.longestMs, 0)
    save(key, cut)
    list_work(open, plan.payId, cut.dueAt)
  end
  return answer('in_flight', now, key)
end

local tries = tonumber(record.tries)
if lease_until ~= 0 and listed(plan.deliveringStates, record.state) then tries = tries + 1 end
return claim({ owner = plan.owner, fence = whole(tonumber(record.fence) + 1), tries = whole(tries) })
