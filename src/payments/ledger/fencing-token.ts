import { randomUUID } from 'node:crypto';
import type { Holder, PaymentRecord } from './ledger.ts';

/** A command token for whoever holds this record: a retried write carries the same one and changes nothing twice. */
export function fencingToken(record: PaymentRecord): Holder {
  return { payId: record.payId, owner: record.owner, fence: record.fence, step: randomUUID() };
}
