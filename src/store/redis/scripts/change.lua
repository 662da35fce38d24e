-- A guarded change of one record, with its receipt, events, kept answer and uses of a mandate; the
-- twin of `advance` and `note` in table.ts. Without `change.to` the record stays in its state. `at`:
-- where its arguments begin among ARGV: the bytes of an answer to keep, the receipt as JSON, both
-- empty where there is none, and `change.events` events.
local function change_record(change, keys, at, now)
  local key, open = keys.payment, keys.open
  local record = read_fields(key, change.reads)

  if record == nil then
    -- The record has expired.
    redis.call('ZREM', open, change.payId)
    return { 'lost' }
  end
  if record.owner ~= change.owner or tonumber(record.fence) ~= change.fence then return { 'fenced' } end
  if record.step == change.step then
    -- Writes what is there already, so that a WAIT on this connection waits for it.
    if change.again then redis.call('HSET', key, 'step', change.step) end
    return answer('done', now, key)
  end
  if change.unchanged and record.step ~= change.seen then return { 'fenced' } end
  if not listed(change.from, record.state) then return { 'illegal', record.state } end

  local fields = change.facts
  for name, value in pairs(fields) do
    if value == '' then return { 'corrupt', name } end
  end
  fields.state = change.to or record.state
  fields.step = change.step
  fields.changedAt = whole(now)
  if change.final then
    fields.leaseUntil = '0'
    fields.dueAt = '0'
  else
    lease(fields, now, change.leaseMs, change.againMs)
  end
  if change.failedDelivery then fields.tries = whole(tonumber(record.tries) + 1) end
  if change.stampSettled then fields.settledAt = whole(now) end

  for name, value in pairs(change.forget) do
    if record[name] ~= nil or fields[name] ~= nil then fields[name] = value end
  end

  for _, name in ipairs(change.required) do
    if fields[name] == nil and record[name] == nil then return { 'corrupt', name } end
  end

  if change.uses and record.mandate then
    register_at(keys.register).finish(cjson.decode(record.mandate).claim, change.uses, now)
  end
  save(key, fields)
  keep_alive(key, now, record.validBefore, change.retentionMs)
  list_work(open, change.payId, fields.dueAt)
  if change.unpaid and record.answered then
    redis.call('ZADD', keys.unpaid, whole(now), change.payId)
    redis.call('ZREMRANGEBYRANK', keys.unpaid, '0', whole(-1 - change.unpaid))
  end
  local trimmed = 0
  if change.receiptId then
    local book = book_at(keys.book)
    book.put({ id = change.receiptId, json = ARGV[at + 1] })
    trimmed = book.trim(plan.receiptsMaxLength, plan.trimmedAtOnce)
  end
  if change.dropReceipt then book_at(keys.book).drop(change.dropReceipt) end
  append_events(keys.events, at + 2, at + 1 + change.events)
  -- Without a new answer an older one stays until its own end.
  if change.keepMs == 0 then redis.call('DEL', keys.kept) end
  if change.keepMs and change.keepMs > 0 then
    if ARGV[at] == '' then
      redis.call('PEXPIRE', keys.kept, whole(change.keepMs))
    else
      redis.call('SET', keys.kept, ARGV[at], 'PX', whole(change.keepMs))
    end
  end
  -- A caller that has seen the last write knows the record.
  if record.step == change.seen then return { 'done', whole(now), false, trimmed } end
  local done = answer('done', now, key)
  done[4] = trimmed
  return done
end
