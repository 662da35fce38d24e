import { randomUUID } from 'node:crypto';
import type { Time } from '../../time/time.ts';
import { fencingToken } from '../ledger/fencing-token.ts';
import type { Advance, Advanced, PaymentLedger, PaymentRecord, PaymentState } from '../ledger/ledger.ts';
import { DELIVERING_STATES } from '../ledger/transitions.ts';
import { LEASE_MS } from '../settlement/leases.ts';
import { PATIENT_PAUSES_MS, persist } from '../settlement/persist.ts';

/** How often, and after which pause, an attempt that has the record now is given time to end, milliseconds. */
const LOOKS = 15;
const PAUSE_MS = 1_000;

/** `held`: by a new holder, in a state in which an answer may be delivered. `over`: the record says for good what became of it. */
type Retaken =
  | { readonly kind: 'held'; readonly record: PaymentRecord }
  | { readonly kind: 'over'; readonly state: PaymentState };

/**
 * The answer is there, and another attempt took the record over, because this process slept or the store was away for longer than a lease.
 * Once that attempt has ended this one holds the record again. Undefined when it does not end, or when the store is away or has lost
 * the record. Never rejects.
 */
export async function retake(
  ledger: PaymentLedger,
  time: Pick<Time, 'sleep'>,
  terms: PaymentRecord,
): Promise<Retaken | undefined> {
  // One owner for all looks: a claim whose reply was lost is found again.
  const owner = randomUUID();
  for (let look = 0; look < LOOKS; look += 1) {
    const claim = ledger.reserve({ terms, owner, leaseMs: LEASE_MS, longestMs: LEASE_MS });
    const reservation = await claim.catch(() => undefined);
    if (reservation === undefined || reservation.kind === 'in_flight') {
      await time.sleep(PAUSE_MS);
      continue;
    }
    // The store lost the record, and knows the mandate or a refusal.
    if (reservation.kind === 'mandate' || reservation.kind === 'refused') return undefined;
    const { record } = reservation;
    if (reservation.kind !== 'granted') return { kind: 'over', state: record.state };
    if (DELIVERING_STATES.includes(record.state)) return { kind: 'held', record };
    // The store lost it: what began anew here is nobody's.
    if (record.state === 'reserved') await ledger.discard(fencingToken(record), []);
    return undefined;
  }
  return undefined;
}

/**
 * The same for an answer that went out: it is written down as delivered, or the buyer would be owed a refund for what he got. Undefined when
 * the record says something else for good; `illegal` from `delivered` when another attempt has written it down, so that nothing is amiss.
 */
export async function deliveredAfterAll(
  ledger: PaymentLedger,
  time: Pick<Time, 'sleep'>,
  terms: PaymentRecord,
  delivered: Omit<Advance, 'payId' | 'owner' | 'fence' | 'step'>,
): Promise<Advanced | undefined> {
  const retaken = await retake(ledger, time, terms);
  if (retaken?.kind === 'held') {
    const command = { ...delivered, ...fencingToken(retaken.record) };
    const written = await persist(() => ledger.advance(command), time, PATIENT_PAUSES_MS);
    return written.kind === 'unwritten' ? undefined : written;
  }
  return retaken?.state === 'delivered' ? { kind: 'illegal', state: retaken.state } : undefined;
}
