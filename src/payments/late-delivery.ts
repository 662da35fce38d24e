import { randomUUID } from 'node:crypto';
import type { Time } from '../time.ts';
import { holder } from './holder.ts';
import { LEASE_MS } from './leases.ts';
import type { Advance, Advanced, PaymentLedger, PaymentRecord } from './ledger/ledger.ts';
import { DELIVERING_STATES } from './ledger/transitions.ts';

/** How often, and after which pause, an attempt that has the record now is given time to end, milliseconds. */
const LOOKS = 15;
const PAUSE_MS = 1_000;

/**
 * The answer went out, and meanwhile somebody took the record over, because this process slept or the store was away for longer than
 * a lease. The buyer has his answer all the same: once nobody works on the record it is written down as delivered, or he would be owed
 * a refund for what he got. Undefined when the record says something else for good; `illegal` from `delivered` when somebody else has
 * written it down, so that nothing is amiss.
 */
export async function deliveredAfterAll(
  ledger: PaymentLedger,
  time: Pick<Time, 'sleep'>,
  terms: PaymentRecord,
  delivered: Omit<Advance, 'payId' | 'owner' | 'fence' | 'step'>,
): Promise<Advanced | undefined> {
  for (let look = 0; look < LOOKS; look += 1) {
    const reservation = await ledger.reserve({ terms, owner: randomUUID(), leaseMs: LEASE_MS, longestMs: LEASE_MS });
    if (reservation.kind === 'busy') {
      await time.sleep(PAUSE_MS);
      continue;
    }
    // The store lost the record, and knows the mandate or a refusal.
    if (reservation.kind === 'mandate' || reservation.kind === 'refused') return undefined;
    const { record } = reservation;
    if (reservation.kind !== 'run')
      return record.state === 'delivered' ? { kind: 'illegal', state: record.state } : undefined;
    if (DELIVERING_STATES.includes(record.state)) return ledger.advance({ ...delivered, ...holder(record) });
    // The store lost it: what began anew here is nobody's.
    if (record.state === 'reserved') await ledger.discard(holder(record), []);
    return undefined;
  }
  return undefined;
}
