-- Appends a batch of events once: a queue numbers its batches and repeats one whose reply was lost.
-- KEYS: events, batch. ARGV, from 2 on: events.
if plan.sequence ~= nil then
  local last = redis.call('GET', KEYS[2])
  if last and tonumber(last) >= plan.sequence then return 0 end
  redis.call('SET', KEYS[2], whole(plan.sequence), 'PX', whole(plan.rememberMs))
end
append_events(KEYS[1], 2, #ARGV)
return 1
