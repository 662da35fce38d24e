-- Claims an authorization, or takes over one whose lease ended; the twin of `reserve` in table.ts.
-- KEYS: payment, open, refusals, with a mandate the register (4), and with an issued token the key
-- of the payment that showed it first.
local key, open = KEYS[1], KEYS[2]
local now = clock()
local record = read_hash(key)

-- Whether the token of the terms may be the secret of a new record.
local function token_counts()
  if plan.token == nil then return true end
  if plan.token.kind ~= 'issued' then return false end
  local shown_for = redis.call('GET', KEYS[#KEYS])
  return not shown_for or shown_for == plan.payId
end

-- The first payment that shows a token has it.
local function note_token()
  if plan.token == nil or plan.token.kind ~= 'issued' then return end
  redis.call('SET', KEYS[#KEYS], plan.payId, 'NX', 'PX', whole(plan.token.forMs))
end

local function claim(fields)
  lease(fields, now, plan.leaseMs, 0)
  fields.changedAt = whole(now)
  save(key, fields)
  keep_alive(key, now, plan.terms.validBefore)
  list_work(open, plan.payId, fields.dueAt)
  note_token()
  -- Records expire, their entries in the work list do not.
  redis.call('ZREMRANGEBYSCORE', open, '-inf', whole(now - plan.workRetentionMs))
  return answer('granted', now, key)
end

if record == nil then
  local refused = plan.proof and redis.call('HGET', KEYS[3], plan.proof)
  if refused then
    local until_ms, reason = string.match(refused, '^(%d+) (.*)$')
    if tonumber(until_ms) > now then return { 'refused', reason } end
  end
  local fields = plan.terms
  if fields.mandate then
    local refusal = register_at(4).reserve(cjson.decode(fields.mandate).claim, now)
    if refusal then return { 'mandate', refusal } end
  end
  if fields.keyDigest or not token_counts() then fields.tokenDigest = nil end
  fields.validBefore = whole(fields.validBefore)
  fields.state = 'reserved'
  fields.owner = plan.owner
  fields.fence = '1'
  fields.step = plan.owner
  fields.tries = '0'
  fields.reservedAt = whole(now)
  return claim(fields)
end

plan.terms.validBefore = record.validBefore
if record.bind ~= plan.terms.bind then return answer('conflict', now, key) end
if not listed(plan.openStates, record.state) then return answer('completed', now, key) end
local secret = record.keyDigest and 'keyDigest' or 'tokenDigest'
if record[secret] ~= nil and record[secret] ~= plan.terms[secret] then return answer('guarded', now, key) end

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
