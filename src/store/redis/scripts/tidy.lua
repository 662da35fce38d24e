-- Drops some delivered receipts over the bound and some that are too old. Returns how many of each.
-- KEYS: book (6).
local book = book_at(1)
local over = book.trim(plan.receiptsMaxLength, plan.trimmedAtOnce)
local old = 0
if plan.maxAgeMs then
  local bound = clock() - plan.maxAgeMs
  old = book.age(string.format('receipt_%08x-%04x', math.floor(bound / 65536), bound % 65536), plan.trimmedAtOnce)
end
return { over, old }
