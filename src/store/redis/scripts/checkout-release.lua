local record = read(KEYS[1])

if record and (not is_of(record, plan) or record.st == 'D') then return 0 end
if record and record.st == 'U' then return 1 end
if record then reopen(KEYS[1], record) end

local lock = held_lock(plan)
if lock then reopen(KEYS[2], lock) end
return 1
