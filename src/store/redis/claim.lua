-- KEYS: parked calls, ends of those that wait, ends of those that are claimed. A claimant who asks again finds his call, and gets no
-- more time: else he could keep it for ever.
local claimant, call = find_parked()

if claimant == nil then return { 'none' } end
if claimant == plan.claimant then
  -- From now on two attempts may run, and neither can give the call away from under the other.
  redis.call('HSET', calls, plan.name, SHARED .. claimant .. '\n' .. call)
  return { 'again', call }
end
if claimant == SHARED .. plan.claimant then return { 'again', call } end
if claimant ~= '' then return { 'taken' } end
keep_parked(plan.claimant, call)
return { 'first', call }
