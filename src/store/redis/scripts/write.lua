-- A guarded change of one record, with its receipt, events, kept answer and uses of a mandate; the
-- twin of `advance` and `note` in table.ts. Without `plan.to` the record stays in its state.
-- KEYS: payment, open, events, kept answer, book (6), and with `plan.uses` the register (4).
-- ARGV[2]: the bytes of an answer to keep.
local key, open = KEYS[1], KEYS[2]
local now = clock()
local record = read_hash(key)

if record == nil then
  -- The record has expired.
  redis.call('ZREM', open, plan.payId)
  return { 'lost' }
end
if record.owner ~= plan.owner or tonumber(record.fence) ~= plan.fence then return { 'fenced' } end
if record.step == plan.step then
  -- Writes what is there already, so that a WAIT on this connection waits for it.
  if plan.again then redis.call('HSET', key, 'step', plan.step) end
  return answer('done', now, key)
end
if not listed(plan.from, record.state) then return { 'illegal', record.state } end

local fields = plan.facts
for name, value in pairs(fields) do
  if value == '' then return { 'corrupt', name } end
end
fields.state = plan.to or record.state
fields.step = plan.step
fields.changedAt = whole(now)
if plan.final then
  fields.leaseUntil = '0'
  fields.dueAt = '0'
else
  lease(fields, now, plan.leaseMs, plan.againMs)
end
if plan.failedDelivery then fields.tries = whole(tonumber(record.tries) + 1) end
if plan.stampSettled then fields.settledAt = whole(now) end

for name, value in pairs(plan.forget) do
  if record[name] ~= nil or fields[name] ~= nil then fields[name] = value end
end

for _, name in ipairs(plan.required) do
  if fields[name] == nil and record[name] == nil then return { 'corrupt', name } end
end

if plan.uses and record.mandate then
  register_at(11).finish(cjson.decode(record.mandate).claim, plan.uses, now)
end
save(key, fields)
keep_alive(key, now, record.validBefore)
list_work(open, plan.payId, fields.dueAt)
local trimmed = 0
if plan.receipt then
  local book = book_at(5)
  book.put(plan.receipt)
  trimmed = book.trim(plan.receiptsMaxLength, plan.trimmedAtOnce)
end
if plan.dropReceipt then book_at(5).drop(plan.dropReceipt) end
append_events(KEYS[3])
-- Without a new answer an older one stays until its own end.
if plan.keepMs == 0 then redis.call('DEL', KEYS[4]) end
if plan.keepMs and plan.keepMs > 0 then redis.call('SET', KEYS[4], ARGV[2], 'PX', whole(plan.keepMs)) end
local done = answer('done', now, key)
done[4] = trimmed
return done
