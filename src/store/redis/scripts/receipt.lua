-- KEYS: book (6). Writes receipts and drops the oldest delivered ones over the bound; the same id again replaces one, unless only new
-- ones are wanted. Answers how many were dropped, and the ids that were written.
local book = book_at(1)
local written = {}
for _, receipt in ipairs(plan.receipts) do
  if not (plan.onlyNew and book.has(receipt)) then
    book.put(receipt)
    written[#written + 1] = receipt.id
  end
end
return { book.trim(plan.receiptsMaxLength, plan.trimmedAtOnce), written }
