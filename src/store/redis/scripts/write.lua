-- One guarded change of one record. KEYS: open, events, book (6), register (4), unpaid, payment,
-- kept answer. ARGV, from 2 on: as `change_record` takes them.
local keys = { open = KEYS[1], events = KEYS[2], book = 3, register = 9, unpaid = KEYS[13], payment = KEYS[14], kept = KEYS[15] }
return change_record(plan, keys, 2, clock())
