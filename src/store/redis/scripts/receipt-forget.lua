-- Drops delivered receipts that a process chose, each of which the line names. Returns how many.
-- KEYS: book (7).
return book_at(1).forget(plan.ids, plan.line)
