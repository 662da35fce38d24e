-- KEYS: payment, open, events, register (4). Deletes a record that is still reserved; the twin of `discard` in table.ts.
local key, open = KEYS[1], KEYS[2]
local record = read_hash(key)

if record == nil then
  redis.call('ZREM', open, plan.payId)
  return { 'gone' }
end
if record.owner ~= plan.owner or tonumber(record.fence) ~= plan.fence then return { 'fenced' } end
if record.state ~= 'reserved' then return { 'illegal', record.state } end

if record.mandate then register_at(4).finish(cjson.decode(record.mandate).claim, 'release', clock()) end
redis.call('DEL', key)
redis.call('ZREM', open, plan.payId)
append_events(KEYS[3])
return { 'gone' }
