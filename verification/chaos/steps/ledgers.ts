/**
 * Compares the answer of a buyer with the ledgers of chain, backend and store: one price, one
 * settlement, one key at the backend, and a true receipt. The gateway must be running.
 */

import assert from 'node:assert/strict';
import { eventually } from '../../../spec/support/records.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import { type Answer, ask, type PaidCall } from './buyer.ts';
import type { Ground } from './ground.ts';
import type { Fate, Purchase } from './purchases.ts';
import type { Site } from './site.ts';

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
