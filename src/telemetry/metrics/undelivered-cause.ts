import type { Advance } from '../../payments/ledger/ledger.ts';

/**
 * Who kept a buyer from what he paid for. `merchant`: his service failed. `client_gone`: the merchant answered and nobody was there to
 * take it. `gateway`: the fault is ours, be it a death, a drain, no memory or a bug.
 */
export const UNDELIVERED_CAUSES = ['merchant', 'client_gone', 'gateway'] as const;
type UndeliveredCause = (typeof UNDELIVERED_CAUSES)[number];

/** The cause of a write that ends in `undelivered`, from what that write tells the books (CONTRACT 6). */
export function undeliveredCause({ receipt, events }: Pick<Advance, 'receipt' | 'events'>): UndeliveredCause {
  const code = receipt?.metadata?.backendErrorCode;
  // Without a code nothing failed: the answer was fetched behind the buyer's back and waits for him.
  if (code === undefined || code === 'CLIENT_GONE') return 'client_gone';
  if (code !== 'BACKEND_ERROR') return 'gateway';
  const failed = events.findLast(({ type }) => type === 'backend.failed');
  // An attempt that died told no failure; one that the end of the process broke off says so.
  return failed === undefined || failed.data?.['reason'] === 'aborted' ? 'gateway' : 'merchant';
}
