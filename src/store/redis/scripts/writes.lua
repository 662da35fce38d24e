-- Guarded changes of several records, each with a reply of its own: one that fails, such as that of
-- a damaged record, must not fail the others. KEYS: open, events, book (6), register (4), unpaid, then
-- payment and kept answer of each. ARGV, from 2 on: those of each change, one after another. Each
-- change counts from when it was true, `waitedMs` ago: by the age of an answer a call knows whether
-- it was there before itself.
local now = clock()
local replies, at = {}, 2
for i, change in ipairs(plan.writes) do
  local keys = { open = KEYS[1], events = KEYS[2], book = 3, register = 9, unpaid = KEYS[13], payment = KEYS[12 + 2 * i], kept = KEYS[13 + 2 * i] }
  local made, reply = pcall(change_record, change, keys, at, now - change.waitedMs)
  if not made then
    local cause = type(reply) == 'table' and reply.err or tostring(reply)
    -- The client leaves such a server only for an error of the whole script.
    if string.sub(cause, 1, 8) == 'READONLY' then return redis.error_reply(cause) end
    reply = { 'failed', cause }
  end
  replies[i] = reply
  at = at + 2 + change.events
end
return replies
