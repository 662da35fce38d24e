-- KEYS: receipts, receipt index. Writes receipts; the same id again replaces one.
for _, receipt in ipairs(plan.receipts) do
  plan.receipt = receipt
  put_receipt(KEYS[1], KEYS[2])
end
return 1
