-- KEYS: parked calls, ends of those that wait, ends of those that are claimed. Nobody remembers who released a call that waits, and it
-- waits for anybody: to whoever releases it again it is released, and nothing changes. At the bound it is forgotten: claimed calls are
-- not counted, so that whoever claims for nothing could get round the bound.
local claimant, call = find_parked()

if claimant == '' then return 1 end
if claimant ~= plan.claimant then return 0 end
if is_full() then
  redis.call('HDEL', calls, plan.name)
  redis.call('ZREM', claimed, plan.name)
  return 0
end
keep_parked('', call)
return 1
