import { receiptId } from './id.ts';
import type { Receipt } from './receipt.ts';

/** What a receipt says of its call. */
type CallFacts = Pick<Receipt, 'requestId' | 'resourceId' | 'protocol' | 'backendStatus' | 'durationMs'> &
  Partial<Pick<Receipt, 'authorization' | 'metadata'>>;

/** The receipt of a call that has just been delivered and that cost nothing here. */
export function unpaidReceipt({ requestId, resourceId, protocol, ...facts }: CallFacts): Receipt {
  const now = new Date().toISOString();
  return { id: receiptId(), requestId, resourceId, protocol, at: now, delivered: true, deliveredAt: now, ...facts };
}
