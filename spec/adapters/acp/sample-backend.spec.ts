import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { schemaOf } from '../../../src/adapters/acp/backend-document.ts';
import { validatorOf } from '../../../src/adapters/acp/validation/validator.ts';
import type { Operation } from '../../../src/checkouts/operations.ts';
import type { Json, JsonObject } from '../../../src/json/types.ts';
import { startCheckoutBackend } from '../../support/acp/checkout-backend.ts';
import { type CheckoutAnswer, DECLINED_TOKEN, openCheckouts, THREE_DS_TOKEN } from '../../support/acp/checkouts.ts';
import { OFFICIAL_SCHEMA_FILE, readOfficial, unless } from './validation/published.ts';
import { CREATE, completeWith } from './with-backend.ts';

const DESTINATION = { name: 'A', line_one: '1', city: 'B', state: 'BE', country: 'DE', postal_code: '10115' };

/** Every kind of answer of the sample backend, with its operation. */
function everything(): readonly (readonly [Operation, CheckoutAnswer])[] {
  const checkouts = openCheckouts({ dedupe: true, siteUrl: 'https://shop.example' });
  const answers: (readonly [Operation, CheckoutAnswer])[] = [];
  const act = (operation: Operation, id: string | undefined, body: Json): CheckoutAnswer => {
    const answer = checkouts.act(operation, id, body as JsonObject, `key ${answers.length}`);
    answers.push([operation, answer]);
    return answer;
  };
  const complete = (id: string, body: string): CheckoutAnswer =>
    act('completeCheckoutSession', id, JSON.parse(body) as Json);
  const create = (body: Json): string => String(act('createCheckoutSession', undefined, body).document['id']);
  const plain = create(JSON.parse(CREATE) as Json);
  const full = create({
    line_items: [{ id: 'a' }, { id: 'b', quantity: 3 }],
    currency: 'eur',
    capabilities: { interventions: { supported: ['3ds', 'address_verification'] } },
    buyer: { email: 'a@shop.example' },
    fulfillment_details: { address: DESTINATION },
  });
  create({ line_items: [{ id: 'sold_out_1' }], currency: 'usd', capabilities: {} });
  act('updateCheckoutSession', full, {
    selected_fulfillment_options: [{ type: 'shipping', option_id: 'standard', item_ids: ['a'] }],
  });
  complete(full, completeWith(DECLINED_TOKEN));
  complete(full, completeWith(THREE_DS_TOKEN));
  complete(full, completeWith(THREE_DS_TOKEN));
  complete(full, completeWith(THREE_DS_TOKEN, { authentication_result: { outcome: 'authenticated' } }));
  for (const operation of ['getCheckoutSession', 'updateCheckoutSession', 'cancelCheckoutSession'] as const)
    act(operation, full, {});
  complete(full, completeWith());
  act('cancelCheckoutSession', plain, {});
  act('getCheckoutSession', 'unknown', {});
  return answers;
}

describe('the sample backend', () => {
  it('goes through every state it has', () => {
    const answers = everything().map(
      ([, { status, document }]) => `${status} ${document['status'] ?? document['code']}`,
    );
    assert.deepEqual(answers, [
      '201 ready_for_payment',
      '201 ready_for_payment',
      '201 not_ready_for_payment',
      '200 ready_for_payment',
      '200 ready_for_payment',
      '200 authentication_required',
      '400 requires_3ds',
      '200 completed',
      '200 completed',
      '409 conflict',
      '405 not_cancelable',
      '409 conflict',
      '200 canceled',
      '404 not_found',
    ]);
  });

  it('sends nothing that is invalid by our schema', () => {
    for (const [operation, { status, document }] of everything()) {
      const name = status < 300 ? schemaOf(operation, document) : 'Error';
      assert.equal(validatorOf('strict', name)(document), undefined, `${operation} ${JSON.stringify(document)}`);
    }
  });

  it('sends nothing that is invalid by the official schema', {
    skip: unless(OFFICIAL_SCHEMA_FILE, 'the documents of the sample backend were NOT checked by the official schema'),
  }, () => {
    const official = readOfficial();
    for (const [operation, { status, document }] of everything()) {
      const name = status < 300 ? schemaOf(operation, document) : 'Error';
      assert.ok(official.accepts(name, document), `${operation} ${JSON.stringify(document)}`);
    }
  });

  it('makes one order for a key, and when it ignores keys one for every complete', () => {
    for (const dedupe of [true, false]) {
      const checkouts = openCheckouts({ dedupe, siteUrl: 'https://shop.example' });
      checkouts.act('createCheckoutSession', undefined, JSON.parse(CREATE) as JsonObject, undefined);
      const complete = (key: string): number =>
        checkouts.act('completeCheckoutSession', 'cs_1', JSON.parse(completeWith()) as JsonObject, key).status;
      assert.deepEqual([complete('k'), complete('k'), complete('other')], dedupe ? [200, 200, 409] : [200, 200, 200]);
      assert.equal(checkouts.sessions.get('cs_1')?.orders.length, dedupe ? 1 : 3);
    }
  });

  it('has its faults in their order, each only for its own calls', async () => {
    const backend = await startCheckoutBackend();
    try {
      const post = async (path: string, body: string): Promise<number> =>
        (await fetch(`${backend.url}${path}`, { method: 'POST', body })).status;
      await post('/checkout_sessions', CREATE);
      backend.misbehave({ kind: 'status', status: 503, acts: true }, { operation: 'completeCheckoutSession' }, 2);
      backend.misbehave({ kind: 'status', status: 500, acts: false });
      const complete = '/checkout_sessions/cs_1/complete';
      assert.equal(await post('/checkout_sessions/cs_1', '{}'), 500);
      assert.deepEqual([await post(complete, completeWith()), await post(complete, completeWith())], [503, 503]);
      assert.equal(await post(complete, completeWith()), 409);
      assert.equal(backend.posts('cs_1'), 4);
      assert.equal(backend.posts('cs_1', 'completeCheckoutSession'), 3);
      assert.equal(backend.orders('cs_1'), 1);
    } finally {
      await backend.stop();
    }
  });
});
