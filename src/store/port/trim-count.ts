import type { TrimmedReceipts } from '../../receipts/receipt.ts';

/** Counts what one process drops from the book of receipts. */
export interface TrimCount {
  add(trimmed: Partial<TrimmedReceipts>): void;
  inAll(): TrimmedReceipts;
}

export function trimCount(): TrimCount {
  let [byLength, byAge] = [0, 0];
  return {
    add({ length = 0, age = 0 }) {
      byLength += length;
      byAge += age;
    },
    inAll: () => ({ length: byLength, age: byAge }),
  };
}
