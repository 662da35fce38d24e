-- One guarded change of one record. KEYS: payment, kept answer, open, events, book (6), and with
-- `plan.uses` the register (4). ARGV, from 2 on: as `change_record` takes them.
return change_record(plan, { payment = KEYS[1], kept = KEYS[2], open = KEYS[3], events = KEYS[4], book = 5, register = 11 }, 2, clock())
