-- Writes receipts and drops the oldest delivered ones over the bound. A receipt replaces one of the
-- same id, unless `plan.onlyNew`. Returns { number of dropped ones, ids that were written }.
-- KEYS: book (6).
local book = book_at(1)
local written = {}
for _, receipt in ipairs(plan.receipts) do
  if not (plan.onlyNew and book.has(receipt)) then
    book.put(receipt)
    written[#written + 1] = receipt.id
  end
end
return { book.trim(plan.receiptsMaxLength, plan.trimmedAtOnce), written }
