/** A purchase during which the gateway dies, and the buyer comes back. */

import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../../spec/support/records.ts';
import type { PaymentLedger, PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { isFinal } from '../../../src/payments/ledger/table.ts';
import type { PaymentStep } from '../../../src/payments/settlement/attempt.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import { type Answer, ask, insist, type PaidCall, sendUntilCut, signedCall } from './buyer.ts';
import { type Fate, fateOf, type Kind, later, type Purchase, purchaseOf, settingsFor } from './purchases.ts';
import { type Ground, openSite, type Site, type SiteParts } from './site.ts';

/** A purchase during which the gateway dies. */
export interface Death {
  readonly where: Pick<SiteParts, 'store' | 'rail'>;
  readonly kind: Kind;
  readonly step: PaymentStep;
  /** Where the process that takes over dies too. */
  readonly again?: PaymentStep;
  /** The buyer's Idempotency-Key. */
  readonly key?: string;
}

/** How long a buyer waits, milliseconds. */
interface Wait {
  /** After the death. */
  readonly afterDeath: number;
  /**
   * After another process serves: the goal applies from there, because the start of a process
   * depends on the machine.
   */
  readonly afterRestart: number;
}

/**
 * A gateway dies at the step and starts again, while the buyer retries with the same proof.
 * Afterwards the ledgers must be as without a death.
 */
export async function dieAndReturn(ground: Ground, { where, kind, step, again, key }: Death): Promise<Wait> {
  const purchase = purchaseOf(kind);
  const site = await openSite(ground, { ...where, ...settingsFor(kind) });
  const doomed = await site.start(step);
  const call = await signedCall(ground, site, purchase.resourceId, purchase.input, key);
  const first = sendUntilCut(call, site.baseUrl);
  assert.deepEqual(await doomed.ended, { code: null, signal: 'SIGKILL' });
  let died = performance.now();
  const answer = await first;
  // The buyer may have its answer only after the last byte was handed over.
  const answered = step === 'relayed' || step === 'delivered' ? 200 : undefined;
  assert.equal(answer?.status, answered, `the first call got ${answer?.status}; its output:\n${doomed.output()}`);

  const insisting = insist(call, site.baseUrl);
  if (again !== undefined) {
    const second = site.start(again);
    // Its reconciler may reach the step before the process is ready.
    await second.then(
      ({ ended }) => ended,
      (thrown: Error) => assert.match(thrown.message, /ended with SIGKILL/),
    );
    died = performance.now();
  }
  const gateway = await site.start();
  try {
    const restarted = performance.now();
    const response = await insisting;
    const wait = { afterDeath: performance.now() - died, afterRestart: performance.now() - restarted };
    await checkLedgers(ground, site, { call, purchase, response, fate: fateOf(kind, later(step, again)) });
    return wait;
  } finally {
    await gateway.kill();
  }
}

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
  const doomed = await site.start(step);
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
async function untilAtRest(ledger: Pick<PaymentLedger, 'read'>, payId: string): Promise<void> {
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

export async function checkLedgers(
  ground: Ground,
  site: Site,
  { call, purchase, response, fate }: { call: PaidCall; purchase: Purchase; response: Answer; fate: Fate },
): Promise<void> {
  assert.equal(await site.income(), call.units, 'the payee has exactly one price');

  const asked = ground.merchant.requests.filter((request) => purchase.asks(request));
  assert.deepEqual(
    asked.map(({ idempotencyKey }) => idempotencyKey),
    Array.from({ length: fate.asked }, () => call.merchantKey),
    'calls of the backend, always under the same key',
  );

  const settled = await site.events('payment.settled');
  assert.equal(settled.length, 1, 'one payment.settled');
  const transaction = String(settled[0]?.data?.['transaction']);
  assert.deepEqual(await site.events('payment.rejected'), [], 'no payment.rejected');

  const delivered = fate.outcome !== 'undelivered';
  const receipt = await receiptThat(site, delivered);
  assert.equal(receipt.payment?.replayKey, call.payId);
  assert.equal(receipt.payment?.externalReference, transaction);
  const mined = (await ground.chain.request('eth_getTransactionReceipt', [transaction])) as { status: string } | null;
  assert.equal(mined?.status, '0x1', 'the transaction of the receipt is on the chain');

  if (fate.outcome === 'answer') {
    assert.equal(response.status, 200, response.text);
    assert.ok(purchase.answers(response.text), response.text);
    return;
  }
  // The call whose delivery failed gets BACKEND_ERROR; a later one gets `undelivered`.
  const answers = response.error?.code === 'BACKEND_ERROR' ? [response, await ask(call, site.baseUrl)] : [response];
  for (const { error, text } of answers) {
    assert.equal(error?.details?.state, 'undelivered', text);
    assert.equal(error.details.payment?.externalReference, transaction, text);
  }
  const last = answers.at(-1);
  assert.deepEqual([last?.status, last?.error?.code, last?.error?.retryable], [409, 'PAYMENT_REPLAYED', false]);
}

/**
 * The one receipt, as soon as it has the expected content: the buyer has its answer a moment before
 * the store.
 */
function receiptThat(site: Site, delivered: boolean): Promise<Receipt> {
  return eventually(async () => {
    assert.ok((await site.receipts()).length <= 1, 'one receipt');
    return (await site.receipts(`delivered=${delivered}`))[0];
  }, `a receipt with delivered ${delivered}`);
}
