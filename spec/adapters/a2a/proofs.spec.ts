import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { decode, found, MUTATIONS, mutate } from '../../e2e/proofs.ts';
import { eventsUntil, receiptWhen } from '../../support/books.ts';
import { createBuyer } from '../../support/buyer.ts';
import { openSeller, type Seller } from '../../support/seller.ts';
import {
  dataOf,
  deliveryOf,
  ENABLED,
  errorOf,
  type Headers,
  type Members,
  message,
  postA2a,
  send,
  sendMessage,
  VERSION,
  x402Of,
} from './post.ts';

const PRICE_UNITS = 10_000n;
const CITY = { city: 'Berlin' };
const PAYLOAD = 'x402.payment.payload';

describe('paying for a task', () => {
  let seller: Seller;
  let base: string;
  before(async () => {
    seller = await openSeller({ overrides: ENABLED });
    base = seller.shop.url;
  });
  after(() => seller?.close());

  /** A proof for a challenge of this channel. */
  const paid = async (): Promise<string> => {
    const asked = await send(base, message('market_report', CITY));
    return seller.buyer.pay(x402Of(asked)['x402.payment.required']);
  };

  const carriers: Readonly<Record<string, (proof: string) => readonly [Members, Headers?]>> = {
    'the input': (proof) => [message('market_report', { ...CITY, _payment: proof })],
    'the input as an object': (proof) => [message('market_report', { ...CITY, _payment: decode(proof) })],
    'the metadata': (proof) => [message('market_report', CITY, { metadata: { [PAYLOAD]: decode(proof) } })],
    'the header': (proof) => [message('market_report', CITY), { 'payment-signature': proof }],
    'all three at once': (proof) => {
      const input = { ...CITY, _payment: proof.replace(/=+$/, '') };
      const metadata = { [PAYLOAD]: decode(proof) };
      return [message('market_report', input, { metadata }), { 'payment-signature': proof }];
    },
  };
  for (const [carrier, carry] of Object.entries(carriers))
    it(`${carrier}: delivered, exactly the price moves, and all members agree`, async () => {
      const [bought, earned] = [await seller.buyer.balance(), await seller.income()];
      const task = await send(base, ...carry(await paid()));
      assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
      assert.deepEqual(dataOf(task), { ...CITY, currency: 'EUR', price: '12.50', volume: 340 });
      assert.equal(bought - (await seller.buyer.balance()), PRICE_UNITS);
      assert.equal((await seller.income()) - earned, PRICE_UNITS);
      const { metadata = {} } = task.artifacts?.[0] ?? {};
      const response = metadata['x402/payment-response'] as Members;
      assert.deepEqual([response['success'], response['payer']], [true, seller.buyer.address.toLowerCase()]);
      assert.deepEqual(deliveryOf(task)['payment'], response);
      assert.deepEqual(metadata['agent-commerce/delivery'], deliveryOf(task));
      assert.deepEqual(x402Of(task), {
        'x402.payment.status': 'payment-completed',
        'x402.payment.receipts': [response],
      });
      const receipt = await receiptWhen(seller.shop, String(task.metadata['agent-commerce/requestId']), true);
      assert.deepEqual([receipt.protocol, receipt.id], ['a2a', response['receiptId']]);
      const events = await eventsUntil(seller.shop, receipt.requestId, 'resource.delivered');
      assert.ok(events.every(({ adapter }) => adapter === 'a2a'));
    });

  it('two different proofs are bad parameters, and no money moves', async () => {
    const [one, other, earned] = [await paid(), await paid(), await seller.income()];
    const twice = message('market_report', { ...CITY, _payment: one }, { metadata: { [PAYLOAD]: decode(other) } });
    for (const [content, headers] of [
      [twice, {}],
      [message('market_report', { ...CITY, _payment: one }), { 'payment-signature': other }],
    ] as const) {
      const error = errorOf(await postA2a(base, sendMessage(content), { ...VERSION, ...headers }), 1);
      assert.equal(error.code, -32602);
      assert.equal(error.data[0]?.fieldViolations?.[0]?.field, `message.metadata["${PAYLOAD}"]`);
    }
    assert.equal(await seller.income(), earned);
  });

  it('the proof of a free call is ignored', async () => {
    const task = await send(base, message('cities', { _payment: 'nonsense' }));
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
  });

  const codes: Readonly<Record<string, string>> = {
    invalid_network: 'NETWORK_MISMATCH',
    invalid_scheme: 'NETWORK_MISMATCH',
    invalid_payment_requirements: 'INVALID_AMOUNT',
    invalid_exact_evm_payload_recipient_mismatch: 'INVALID_AMOUNT',
    invalid_exact_evm_payload_authorization_value_mismatch: 'INVALID_AMOUNT',
    invalid_exact_evm_payload_authorization_valid_after: 'EXPIRED_PAYMENT',
    invalid_exact_evm_payload_authorization_valid_before: 'EXPIRED_PAYMENT',
    invalid_exact_evm_payload_signature: 'INVALID_SIGNATURE',
    invalid_payload: 'INVALID_SIGNATURE',
    invalid_x402_version: 'INVALID_SIGNATURE',
  };
  const tried = new Map(MUTATIONS.map((mutation) => [mutation.reason, mutation]));
  for (const { reason, field, at, to } of tried.values())
    it(`a proof with another ${field}: a fresh challenge, and ${codes[reason]}`, async () => {
      const payload = decode(await paid());
      mutate(payload, at, to);
      const task = await send(base, message('market_report', CITY, { metadata: { [PAYLOAD]: payload } }));
      assert.equal(task.status.state, 'TASK_STATE_FAILED');
      const { error, payment } = dataOf(task) as { error: { reason: string }; payment: { envelope: object } };
      assert.equal(error.reason, reason);
      assert.deepEqual(x402Of(task), {
        'x402.payment.status': 'payment-failed',
        'x402.payment.error': codes[reason],
        'x402.payment.required': payment.envelope,
      });
    });

  it('a buyer without money: INSUFFICIENT_FUNDS', async () => {
    const poor = await createBuyer(seller.chain, 0n);
    const asked = await send(base, message('market_report', CITY));
    const proof = await poor.pay(x402Of(asked)['x402.payment.required']);
    const task = await send(base, message('market_report', { ...CITY, _payment: proof }));
    assert.equal(x402Of(task)['x402.payment.error'], 'INSUFFICIENT_FUNDS');
  });

  it('a proof that has bought its answer: DUPLICATE_NONCE, and no second payment is asked for', async () => {
    const proof = await paid();
    const pay = (_payment: string): Members => message('market_report', { ...CITY, _payment });
    assert.equal((await send(base, pay(proof))).status.state, 'TASK_STATE_COMPLETED');
    const earned = await seller.income();
    const again = await send(base, pay(found(proof)));
    assert.equal(dataOf(again)['code'], 'PAYMENT_REPLAYED');
    assert.deepEqual(x402Of(again), {
      'x402.payment.status': 'payment-completed',
      'x402.payment.error': 'DUPLICATE_NONCE',
    });
    assert.equal(await seller.income(), earned);
    const elsewhere = await send(base, message('market_report', { city: 'Lisboa', _payment: proof }));
    assert.equal(x402Of(elsewhere)['x402.payment.status'], 'payment-failed');
  });

  for (const [what, headers] of [
    ['the same message', {}],
    ['an idempotency key', { 'idempotency-key': 'order-4711' }],
  ] as const)
    it(`${what} gets its answer again, as a new task: paid once, run once`, async () => {
      const pay = message('market_report', { ...CITY, _payment: await paid() });
      const [earned, calls] = [await seller.income(), seller.merchant.requests.length];
      const [first, again] = [await send(base, pay, headers), await send(base, pay, headers)];
      assert.deepEqual(dataOf(again), dataOf(first));
      assert.deepEqual([deliveryOf(first)['replayed'], deliveryOf(again)['replayed']], [undefined, true]);
      assert.notEqual(again.id, first.id);
      assert.equal((await seller.income()) - earned, PRICE_UNITS);
      assert.equal(seller.merchant.requests.length - calls, 1);
    });
});
