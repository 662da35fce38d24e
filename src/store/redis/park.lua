-- KEYS: parked calls, ends of those that wait, ends of those that are claimed. ARGV[2]: the text of the call. What is replaced takes
-- no more room than before, so that a command whose reply was lost can be repeated at the bound too.
local claimant = find_parked()

if claimant == nil and (is_full() or redis.call('ZCARD', claimed) >= plan.maxClaimed) then return 0 end
if claimant ~= nil and claimant ~= '' then return 0 end
keep_parked('', ARGV[2])
return 1
