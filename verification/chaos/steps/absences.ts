/** Deaths after which the buyer does not come back, so that the reconciler has to finish. */

import { setTimeout as delay } from 'node:timers/promises';
import type { PaymentLedger, PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { isFinal } from '../../../src/payments/ledger/transitions.ts';
import { ask, sendUntilCut, signedCall } from './buyer.ts';
import type { Death } from './deaths.ts';
import type { Ground } from './ground.ts';
import { checkLedgers } from './ledgers.ts';
import { fateOf, purchaseOf, settingsFor } from './purchases.ts';
import { openSite } from './site.ts';

/** A record that is not due for this time needs no reconciler, milliseconds. */
const NOT_SOON_MS = 3_600_000;
const LOOK_EVERY_MS = 50;
/** Longest wait, milliseconds. */
const PATIENCE_MS = 30_000;

/**
 * A gateway dies at the step, starts again, and the buyer sends nothing until the payment needs no
 * more work. Then it sends the call once. @returns how long the reconciler took after the restart,
 * milliseconds
 */
export async function dieAndReturnLate(ground: Ground, { where, kind, step, key }: Death): Promise<number> {
  const purchase = purchaseOf(kind);
  const site = await openSite(ground, { ...where, ...settingsFor(kind) });
  const doomed = await site.start({ halt: { at: step, signal: 'SIGKILL' } });
  const call = await signedCall(ground, site, purchase.resourceId, purchase.input, key);
  await Promise.all([sendUntilCut(call, site.baseUrl), doomed.ended]);

  const store = await site.openStore();
  const gateway = await site.start();
  const restarted = performance.now();
  await untilAtRest(store.ledger, call.payId);
  const took = performance.now() - restarted;
  await store.close();

  const response = await ask(call, site.baseUrl);
  await checkLedgers(ground, site, { call, purchase, response, fate: fateOf(kind, step) });
  await gateway.kill();
  return took;
}

/**
 * Reads until the record needs no more work. @throws Error with the record when it still does after
 * 30 s
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

/** Gone, final, or waiting for its buyer. */
function isAtRest(record: PaymentRecord | undefined): boolean {
  if (record === undefined || isFinal(record.state)) return true;
  if (record.leaseUntil !== 0) return false;
  // A kept answer waits until the proof of its buyer is over.
  return record.state === 'worked' || (record.state === 'undelivered' && record.dueAt > Date.now() + NOT_SOON_MS);
}
