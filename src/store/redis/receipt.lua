-- KEYS: receipts, receipt index. Writes one receipt; the same id again replaces it.
put_receipt(KEYS[1], KEYS[2])
return 1
