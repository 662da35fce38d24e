-- KEYS: parked calls, ends of those that wait, ends of those that are claimed. Nobody remembers who released a call that waits, and it
-- waits for anybody: to whoever releases it again it is released, and nothing changes. At the bound it stays with its claimant.
local claimant, call = find_parked()

if claimant == '' then return 1 end
if claimant ~= plan.claimant or is_full() then return 0 end
keep_parked('', call)
return 1
