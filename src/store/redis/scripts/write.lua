-- One guarded change of one record. KEYS: open, events, book (7), register (4), unpaid, payment,
-- kept answer. ARGV, from 2 on: as `change_record` takes them.
local keys = { open = KEYS[1], events = KEYS[2], book = 3, register = 10, unpaid = KEYS[14], payment = KEYS[15], kept = KEYS[16] }
return change_record(plan, keys, 2, clock())
