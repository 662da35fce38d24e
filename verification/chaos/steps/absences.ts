/** Deaths after which the buyer does not come back, so that the reconciler has to finish. */

import { setTimeout as delay } from 'node:timers/promises';
import type { PaymentLedger, PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { isFinal } from '../../../src/payments/ledger/transitions.ts';
import { checkBooks } from './books.ts';
import { ask, sendUntilCut, signedCall } from './buyer.ts';
import type { Death } from './deaths.ts';
import type { Ground } from './ground.ts';
import { fateOf, purchaseOf } from './purchases.ts';
import { openSite } from './site.ts';

/** A reconciler that need not look for so long has nothing to do, milliseconds. */
const NOT_SOON_MS = 3_600_000;
const LOOK_EVERY_MS = 50;
/** When to stop looking, milliseconds. */
const PATIENCE_MS = 30_000;

/**
 * A gateway dies at the step, starts again, and the buyer stays away until nobody has work with his
 * payment any more. Then he comes once. @returns how long the reconciler took after the restart,
 * milliseconds
 */
export async function dieAndReturnLate(ground: Ground, { where, kind, step, key }: Death): Promise<number> {
  const purchase = purchaseOf(kind);
  const site = await openSite(ground, where);
  const doomed = await site.start({ halt: { at: step, signal: 'SIGKILL' } });
  const call = await signedCall(ground, site, purchase.resourceId, purchase.input, key);
  await Promise.all([sendUntilCut(call, site.baseUrl), doomed.ended]);

  const store = await site.openStore();
  const gateway = await site.start();
  const restarted = performance.now();
  await untilAtRest(store.ledger, call.payId);
  const took = performance.now() - restarted;
  await store.close();

  const told = await ask(call, site.baseUrl);
  await checkBooks(ground, site, { call, purchase, told, fate: fateOf(kind, step) });
  await gateway.kill();
  return took;
}

/**
 * Looks until the record asks nobody for anything. @throws Error with the record when it still does
 * after 30 s
 */
export async function untilAtRest(ledger: Pick<PaymentLedger, 'read'>, payId: string): Promise<void> {
  const ends = Date.now() + PATIENCE_MS;
  for (;;) {
    const record = await ledger.read(payId);
    if (isAtRest(record)) return;
    if (Date.now() > ends) throw new Error(`still open: ${JSON.stringify(record)}`);
    await delay(LOOK_EVERY_MS);
  }
}

/** Gone, ended, or left to its buyer. */
function isAtRest(record: PaymentRecord | undefined): boolean {
  if (record === undefined || isFinal(record.state)) return true;
  return record.state === 'undelivered' && record.leaseUntil === 0 && record.dueAt > Date.now() + NOT_SOON_MS;
}
