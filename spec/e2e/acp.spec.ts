import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../../src/json/json.ts';
import { askAcp, assertAcpError } from '../adapters/acp/testbed.ts';
import { type CheckoutBackend, startCheckoutBackend } from '../support/acp/checkout-backend.ts';
import { DECLINED_TOKEN, THREE_DS_TOKEN } from '../support/acp/checkouts.ts';
import { type CheckoutGateway, startCheckoutGateway } from '../support/acp/gateway.ts';
import { startRedis } from '../support/redis.ts';
import { type Assistant, assistantAt, documentIn, paymentWith } from './acp-assistant.ts';

/** The stores, and how many gateway processes share one here. */
const REPLICAS = [
  ['Redis', 2],
  ['SQLite', 1],
] as const;

/** What runs, and what a spec needs to talk to it. */
interface CheckoutReplicas {
  readonly merchant: CheckoutBackend;
  readonly gateways: readonly CheckoutGateway[];
  /** Each of its calls goes to another replica than the one before. */
  readonly assistant: Assistant;
  /** The URL for the next call. */
  next(): string;
  /** Orders made of the session of this path. */
  orders(path: string): number;
  stop(): Promise<void>;
}

/** Starts it. What had started is ended again when a later part fails. */
async function startCheckoutReplicas([store, count]: (typeof REPLICAS)[number]): Promise<CheckoutReplicas> {
  await using ends = new AsyncDisposableStack();
  const backend = ends.adopt(await startCheckoutBackend({ dedupe: false }), ({ stop }) => stop());
  const redis = store === 'Redis' ? ends.adopt(await startRedis(), ({ stop }) => stop()) : undefined;
  const storage = redis === undefined ? undefined : { redis: { url: redis.url } };
  const acp = { authenticationErrors: true };
  const gateways: CheckoutGateway[] = [];
  for (let nth = 0; nth < count; nth += 1) {
    const gateway = await startCheckoutGateway({ backendUrl: backend.url, acp, storage });
    gateways.push(ends.adopt(gateway, ({ stop }) => stop()));
  }
  let turn = 0;
  const next = (): string => {
    turn += 1;
    return gateways[turn % count]?.url ?? assert.fail('no gateway');
  };
  const orders = (path: string): number => backend.orders(path.split('/').at(-1) ?? '');
  const started = ends.move();
  return {
    merchant: backend,
    gateways,
    assistant: assistantAt(next),
    next,
    orders,
    stop: () => started.disposeAsync(),
  };
}

const AUTHENTICATED = {
  authentication_result: {
    outcome: 'authenticated',
    outcome_details: {
      three_ds_cryptogram: 'AJkBByyRcwAAAAAAiGUzdJZbDQA=',
      electronic_commerce_indicator: '05',
      transaction_id: 'transaction-1',
      version: '2.2.0',
    },
  },
};

for (const kind of REPLICAS)
  describe(`a checkout over ${kind[0]}, through ${kind[1]} gateway process(es)`, () => {
    let replicas: CheckoutReplicas;
    before(async () => {
      replicas = await startCheckoutReplicas(kind);
    });
    after(() => replicas?.stop());

    it('goes from the cart to one order, and cannot be changed afterwards', async () => {
      const path = await replicas.assistant.open();
      const address = { name: 'A', line_one: 'B 1', city: 'Berlin', state: 'BE', country: 'DE', postal_code: '10115' };
      const changes = {
        buyer: { email: 'a@b.example' },
        fulfillment_details: { address },
        selected_fulfillment_options: [{ type: 'shipping', option_id: 'standard', item_ids: ['item_1'] }],
      };
      const updated = documentIn(await replicas.assistant.post(path, changes), 200);
      assert.deepEqual(updated['fulfillment_details'], { address });
      assert.equal(documentIn(await replicas.assistant.get(path), 200)['status'], 'ready_for_payment');
      const completed = documentIn(await replicas.assistant.post(`${path}/complete`, paymentWith('tok_1')), 200);
      assert.equal(completed['status'], 'completed');
      assert.equal((completed['order'] as JsonObject)['checkout_session_id'], completed['id']);
      assert.deepEqual(documentIn(await replicas.assistant.get(path), 200), completed);
      assertAcpError(await replicas.assistant.post(`${path}/cancel`, {}), 405, 'checkout_session_not_cancelable');
      assertAcpError(await replicas.assistant.post(path, changes), 409, 'checkout_session_conflict');
      assert.equal(replicas.orders(path), 1);
    });

    it('is canceled, and cannot be paid afterwards', async () => {
      const path = await replicas.assistant.open();
      const trace = { intent_trace: { reason_code: 'price_sensitivity', trace_summary: 'too dear' } };
      assert.equal(documentIn(await replicas.assistant.post(`${path}/cancel`, trace), 200)['status'], 'canceled');
      assertAcpError(
        await replicas.assistant.post(`${path}/complete`, paymentWith('tok_1')),
        409,
        'checkout_session_conflict',
      );
      assert.equal(replicas.orders(path), 0);
    });

    it('gets through 3D Secure', async () => {
      const capabilities = { interventions: { supported: ['3ds'] } };
      const path = await replicas.assistant.open({ line_items: [{ id: 'item_1' }], currency: 'usd', capabilities });
      const asked = documentIn(await replicas.assistant.post(`${path}/complete`, paymentWith(THREE_DS_TOKEN)), 200);
      assert.equal(asked['status'], 'authentication_required');
      assert.ok(asked['authentication_metadata'] !== undefined);
      const without = await replicas.assistant.post(`${path}/complete`, paymentWith(THREE_DS_TOKEN));
      assert.equal(assertAcpError(without, 422, 'requires_3ds')['param'], '$.authentication_result');
      const proven = await replicas.assistant.post(`${path}/complete`, paymentWith(THREE_DS_TOKEN, AUTHENTICATED));
      assert.equal(documentIn(proven, 200)['status'], 'completed');
      assert.equal(replicas.orders(path), 1);
    });

    it('stays open when the card is declined, and takes the next one', async () => {
      const path = await replicas.assistant.open();
      const declined = documentIn(await replicas.assistant.post(`${path}/complete`, paymentWith(DECLINED_TOKEN)), 200);
      assert.equal(declined['status'], 'ready_for_payment');
      assert.deepEqual(
        (declined['messages'] as readonly JsonObject[]).map(({ code }) => code),
        ['payment_declined'],
      );
      const paid = documentIn(await replicas.assistant.post(`${path}/complete`, paymentWith('tok_2')), 200);
      assert.equal(paid['status'], 'completed');
      assert.equal(replicas.orders(path), 1);
    });

    it('of something sold out is not paid', async () => {
      const path = await replicas.assistant.open({
        line_items: [{ id: 'sold_out_1' }],
        currency: 'usd',
        capabilities: {},
      });
      const session = documentIn(await replicas.assistant.get(path), 200);
      assert.equal(session['status'], 'not_ready_for_payment');
      assertAcpError(
        await replicas.assistant.post(`${path}/complete`, paymentWith('tok_1')),
        409,
        'checkout_session_conflict',
      );
    });

    it('answers every repetition in the same bytes, on either replica, without a call to the merchant', async () => {
      const path = await replicas.assistant.open();
      const calls = [
        ['/checkout_sessions', { line_items: [{ id: 'item_2' }], currency: 'usd', capabilities: {} }],
        [path, { order_notes: 'ring twice' }],
        [`${path}/complete`, paymentWith('tok_1')],
        [`${path}/cancel`, {}],
      ] as const;
      for (const [to, body] of calls) {
        const key = `repeated ${to}`;
        const first = await replicas.assistant.post(to, body, key);
        const asked = replicas.merchant.calls.length;
        // Another order of members and other spaces are the same body (acp 12.2).
        const spelled = Object.fromEntries(Object.entries<JsonObject[string]>(body).toReversed());
        for (const again of [
          await replicas.assistant.post(to, body, key),
          await replicas.assistant.post(to, body, key),
          await askAcp(replicas.next(), {
            path: to,
            headers: { 'idempotency-key': key },
            body: JSON.stringify(spelled, null, 2),
          }),
        ]) {
          assert.deepEqual([again.status, again.text], [first.status, first.text]);
          assert.equal(again.headers['idempotent-replayed'], 'true');
          assert.equal(again.headers['idempotency-key'], key);
        }
        assert.equal(first.headers['idempotent-replayed'], undefined);
        assert.equal(replicas.merchant.calls.length, asked);
        assertAcpError(
          await replicas.assistant.post(to, { ...body, order_notes: 'other' }, key),
          422,
          'idempotency_conflict',
        );
      }
      assert.equal(replicas.orders(path), 1);
    });
  });
