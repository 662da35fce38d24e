-- Deletes a record that is still reserved; the twin of `discard` in table.ts. `plan.refusal`: why
-- the provider refused the proof, which is remembered. KEYS: payment, open, events, refusals, their
-- ends, register (4). ARGV, from 2 on: events.
local key, open = KEYS[1], KEYS[2]
local record = read_fields(key, { 'owner', 'fence', 'state', 'mandate' })

local function forget_refusals(proofs)
  for _, proof in ipairs(proofs) do
    redis.call('HDEL', KEYS[4], proof)
    redis.call('ZREM', KEYS[5], proof)
  end
end

-- The first reason stays until its end. Ended refusals are deleted, and above the bound those that
-- end first.
local function remember(refusal)
  if refusal == nil then return end
  local refusals, ends = KEYS[4], KEYS[5]
  local now = clock()
  forget_refusals(redis.call('ZRANGE', ends, '-inf', whole(now), 'BYSCORE', 'LIMIT', '0', whole(plan.sweptRefusals)))
  local known = redis.call('HGET', refusals, refusal.proof)
  if known and tonumber(string.match(known, '^%d+')) > now then return end
  local until_ms = whole(math.min(refusal['until'], now + refusal.atMostMs))
  redis.call('HSET', refusals, refusal.proof, until_ms .. ' ' .. refusal.reason)
  redis.call('ZADD', ends, until_ms, refusal.proof)
  local over = redis.call('ZCARD', ends) - plan.maxRefusals
  if over > 0 then forget_refusals(redis.call('ZRANGE', ends, '0', whole(over - 1))) end
end

if record == nil then
  redis.call('ZREM', open, plan.payId)
  remember(plan.refusal)
  return { 'gone' }
end
if record.owner ~= plan.owner or tonumber(record.fence) ~= plan.fence then return { 'fenced' } end
if record.state ~= 'reserved' then return { 'illegal', record.state } end

if record.mandate then register_at(6).finish(cjson.decode(record.mandate).claim, 'release', clock()) end
redis.call('DEL', key)
redis.call('ZREM', open, plan.payId)
append_events(KEYS[3], 2, #ARGV)
remember(plan.refusal)
return { 'gone' }
