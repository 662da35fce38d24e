import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isEnvelope } from '../../e2e/ask.ts';
import { receiptWhen } from '../../support/books.ts';
import { openSeller, type Seller } from '../../support/seller.ts';
import { openShop } from '../../support/shop.ts';
import {
  dataOf,
  ENABLED,
  message,
  postA2a,
  schemaOf,
  send,
  sendMessage,
  type Task,
  taskOf,
  VERSION,
  x402Of,
} from './post.ts';

/** The largest answer that fits into a message, bytes. */
const CAP = 1_048_576;
const CITY = { city: 'Berlin' };
const isChallenge = schemaOf('payment-required');

/** The error envelope of a failed task. */
function failure(task: Task, code: string): Record<string, unknown> {
  assert.equal(task.status.state, 'TASK_STATE_FAILED');
  const envelope = dataOf(task);
  assert.ok(isEnvelope(envelope), JSON.stringify(isEnvelope.errors));
  assert.equal(envelope['code'], code);
  assert.equal(envelope['requestId'], task.metadata['agent-commerce/requestId']);
  assert.equal(task.status.message?.parts[0].text, envelope['message']);
  return envelope;
}

describe('a call as a task', () => {
  let seller: Seller;
  let base: string;
  before(async () => {
    const hidden = {
      name: 'Hidden',
      inputSchema: { type: 'object', properties: {} },
      backend: { method: 'GET', path: '/cities' },
      pricing: { type: 'free' },
      expose: ['http'],
    };
    seller = await openSeller({ overrides: { ...ENABLED, resources: { hidden } } });
    base = seller.shop.url;
  });
  after(() => seller?.close());

  it('delivered: completed, with fresh ids, the summary on the artifact and on the task', async () => {
    const answer = await postA2a(base, sendMessage(message('cities')), { ...VERSION, 'x-request-id': 'asked-1' });
    const task = taskOf(answer);
    assert.equal(answer.headers['x-request-id'], 'asked-1');
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
    assert.equal(task.artifacts?.[0].name, 'cities');
    assert.deepEqual(dataOf(task), { cities: ['Berlin', 'Lisboa', 'São Paulo'] });
    const delivery = { requestId: 'asked-1', resourceId: 'cities', status: 200 };
    assert.deepEqual(task.artifacts[0].metadata, { 'agent-commerce/delivery': delivery });
    assert.deepEqual(task.metadata, { 'agent-commerce/delivery': delivery, 'agent-commerce/requestId': 'asked-1' });
    assert.equal(task.status.message, undefined, 'a free call has no word about payments');
    const again = await send(base, message('cities'));
    assert.equal(new Set([task.id, task.contextId, again.id, again.contextId]).size, 4);
  });

  it('a request without an id of its own gets one with the name of the channel', async () => {
    const { metadata } = await send(base, message('cities'));
    assert.match(String(metadata['agent-commerce/requestId']), /^a2a_[0-9a-f-]{36}$/);
  });

  it('an object is delivered as it is', async () => {
    const input = { price: 1.5, deep: { list: [1, null, 'ü'] } };
    assert.deepEqual(dataOf(await send(base, message('free_echo', input))), input);
  });

  for (const [what, resource, value] of [
    ['text', 'free_greeting', 'Grüß Gott\n'],
    ['CSV', 'free_price_list', 'city,price\r\nBerlin,12.50\r\nSão Paulo,9.90\r\n'],
    ['an empty answer', 'free_nothing', null],
  ] as const)
    it(`${what} is wrapped`, async () => assert.deepEqual(dataOf(await send(base, message(resource))), { value }));

  it('bytes are wrapped as base64 with their media type, and none is lost', async () => {
    const { value, ...kind } = dataOf(await send(base, message('free_bytes', { size: 70_000 })));
    assert.deepEqual(kind, { encoding: 'base64', mediaType: 'application/octet-stream' });
    assert.equal(Buffer.from(String(value), 'base64').length, 70_000);
  });

  it('as much as fits is delivered; one byte more fails, declared or not', async () => {
    assert.equal((await send(base, message('free_bytes', { size: CAP }))).status.state, 'TASK_STATE_COMPLETED');
    for (const undeclared of [false, true]) {
      const task = await send(base, message('free_bytes', { size: CAP + 1, undeclared }));
      const { reason } = failure(task, 'BACKEND_ERROR')['details'] as { reason: string };
      assert.equal(reason, 'response_too_large');
    }
  });

  it('payment required: failed, the envelope of the 402 is the data', async () => {
    const task = await send(base, message('market_report', CITY));
    assert.equal(task.status.state, 'TASK_STATE_FAILED');
    assert.equal(task.artifacts?.[0].name, 'market_report');
    const envelope = dataOf(task);
    assert.ok(isChallenge(envelope), JSON.stringify(isChallenge.errors));
    const { payment } = envelope as { payment: { accepts: unknown; envelope: unknown } };
    assert.deepEqual(payment.accepts, (await seller.quote('market_report', CITY)).body.payment.accepts);
    assert.deepEqual(x402Of(task), {
      'x402.payment.status': 'payment-required',
      'x402.payment.required': payment.envelope,
    });
    // The text for models: what is asked, and where a payment goes.
    const text = task.status.message?.parts[0].text ?? '';
    assert.ok(text.startsWith(String(envelope['message'])), text);
    assert.match(text, /metadata\["x402\.payment\.payload"\].*input\._payment/);
  });

  for (const [what, code, resource, input, named] of [
    ['a resource that does not exist', 'RESOURCE_NOT_FOUND', 'nowhere', {}, false],
    ['a resource that is not exposed here', 'RESOURCE_NOT_FOUND', 'hidden', {}, false],
    ['a name that every object has', 'RESOURCE_NOT_FOUND', 'constructor', {}, false],
    ['a text that cannot be a name', 'RESOURCE_NOT_FOUND', 'no such thing', {}, false],
    ['an input that does not fit', 'INPUT_INVALID', 'market_report', { city: 7 }, true],
    ['a backend that fails', 'BACKEND_ERROR', 'free_failing', { status: 500 }, true],
    ['a backend that breaks off', 'BACKEND_ERROR', 'free_broken', {}, true],
    ['a backend that is silent', 'BACKEND_TIMEOUT', 'free_silent', {}, true],
    ['a backend that redirects', 'BACKEND_ERROR', 'free_redirecting', {}, true],
  ] as const)
    it(`${what}: failed with ${code}, never a JSON-RPC error`, async () => {
      const task = await send(base, message(resource, input));
      const envelope = failure(task, code);
      assert.equal(envelope['resourceId'], named ? resource : undefined);
      assert.equal(task.artifacts?.[0].name, resource.includes(' ') ? 'error' : resource);
      assert.deepEqual(x402Of(task), {});
    });

  it('the reserved members of an input never reach the backend', async () => {
    const task = await send(base, message('free_echo', { a: 1, _payment: '', _authorization: 'x' }));
    assert.deepEqual(dataOf(task), { a: 1 });
  });

  it('more calls than slots: failed with GATEWAY_BUSY and Retry-After', async () => {
    const { chain, merchant } = seller;
    const overrides = { ...ENABLED, limits: { maxInFlight: 1 } };
    const shop = await openShop({ chain, merchantUrl: merchant.url, facilitator: { mode: 'local' }, overrides });
    try {
      merchant.hold();
      const arrived = merchant.nextRequest('/held');
      const held = send(shop.url, message('free_held'));
      await arrived;
      const answer = await postA2a(shop.url, sendMessage(message('cities')));
      assert.equal(failure(taskOf(answer), 'GATEWAY_BUSY')['retryable'], true);
      assert.equal(answer.headers['retry-after'], '1');
      merchant.release();
      assert.equal((await held).status.state, 'TASK_STATE_COMPLETED');
    } finally {
      await shop.close();
    }
  });

  it('a paid call that the backend fails states that money moved, and the same payment collects', async () => {
    const earned = await seller.income();
    const proof = await seller.proof('flaky', { failures: 1 });
    const pay = message('flaky', { failures: 1, _payment: proof });
    const task = await send(base, pay);
    const envelope = failure(task, 'BACKEND_ERROR');
    assert.equal(envelope['retryable'], true);
    assert.equal(x402Of(task)['x402.payment.status'], 'payment-completed');
    const response = task.artifacts?.[0].metadata?.['x402/payment-response'];
    assert.deepEqual(x402Of(task)['x402.payment.receipts'], [response]);
    const collected = await send(base, { ...pay, messageId: 'another' });
    assert.deepEqual(dataOf(collected), { delivered: true });
    assert.equal((await seller.income()) - earned, 1_000n, 'paid once');
    const receipt = await receiptWhen(seller.shop, String(task.metadata['agent-commerce/requestId']), true);
    assert.equal(receipt.protocol, 'a2a');
  });
});
