import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { deliveredData } from '../../../src/adapters/a2a/response-writer.ts';
import { readContent } from '../../../src/adapters/json-rpc/answer-content.ts';
import { isEnvelope } from '../../e2e/ask.ts';
import { decode, found, MUTATIONS, mutate } from '../../e2e/proofs.ts';
import { createBuyer } from '../../support/buyer.ts';
import { openGateway } from '../../support/gateway.ts';
import { eventsUntil, receiptWhen } from '../../support/records.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import {
  dataOf,
  deliveryOf,
  ENABLED,
  errorOf,
  type Headers,
  type Members,
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
const PRICE_UNITS = 10_000n;
const CITY = { city: 'Berlin' };
const PAYLOAD = 'x402.payment.payload';
const isChallenge = schemaOf('payment-required');

let testbed: Testbed;
let base: string;
before(async () => {
  const hidden = {
    name: 'Hidden',
    inputSchema: { type: 'object', properties: {} },
    backend: { method: 'GET', path: '/cities' },
    pricing: { type: 'free' },
    expose: ['http'],
  };
  testbed = await openTestbed({ overrides: { ...ENABLED, resources: { hidden } } });
  base = testbed.gateway.url;
});
after(() => testbed?.close());

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
    assert.deepEqual(payment.accepts, (await testbed.quote('market_report', CITY)).body.payment.accepts);
    assert.deepEqual(x402Of(task), {
      'x402.payment.status': 'payment-required',
      'x402.payment.required': payment.envelope,
    });
    // The text for models: what is asked, and where a payment goes.
    const text = task.status.message?.parts[0].text ?? '';
    assert.ok(text.startsWith(String(envelope['message'])), text);
    assert.match(text, /metadata\["x402\.payment\.payload"\].*input\._payment/);
  });

  it('a failure: failed with its code, never a JSON-RPC error', async () => {
    for (const [code, resource, input, named] of [
      ['RESOURCE_NOT_FOUND', 'nowhere', {}, false],
      ['RESOURCE_NOT_FOUND', 'hidden', {}, false],
      ['RESOURCE_NOT_FOUND', 'constructor', {}, false],
      ['RESOURCE_NOT_FOUND', 'no such thing', {}, false],
      ['INPUT_INVALID', 'market_report', { city: 7 }, true],
      ['BACKEND_ERROR', 'free_failing', { status: 500 }, true],
      ['BACKEND_ERROR', 'free_broken', {}, true],
    ] as const) {
      const task = await send(base, message(resource, input));
      const envelope = failure(task, code);
      assert.equal(envelope['resourceId'], named ? resource : undefined);
      assert.equal(task.artifacts?.[0].name, resource.includes(' ') ? 'error' : resource);
      assert.deepEqual(x402Of(task), {});
    }
  });

  it('the reserved members of an input never reach the backend', async () => {
    const task = await send(base, message('free_echo', { a: 1, _payment: '', _authorization: 'x' }));
    assert.deepEqual(dataOf(task), { a: 1 });
  });

  it('more calls than slots: failed with GATEWAY_BUSY and Retry-After', async () => {
    const { chain, backend } = testbed;
    const overrides = { ...ENABLED, limits: { maxInFlight: 1 } };
    const gateway = await openGateway({ chain, backendUrl: backend.url, facilitator: { mode: 'local' }, overrides });
    try {
      backend.hold();
      const arrived = backend.nextRequest('/held');
      const held = send(gateway.url, message('free_held'));
      await arrived;
      const answer = await postA2a(gateway.url, sendMessage(message('cities')));
      assert.equal(failure(taskOf(answer), 'GATEWAY_BUSY')['retryable'], true);
      assert.equal(answer.headers['retry-after'], '1');
      backend.release();
      assert.equal((await held).status.state, 'TASK_STATE_COMPLETED');
    } finally {
      await gateway.close();
    }
  });

  it('a paid call that the backend fails states that money moved, and the same payment collects', async () => {
    const earned = await testbed.income();
    const proof = await testbed.proof('flaky', { failures: 1 });
    const pay = message('flaky', { failures: 1, _payment: proof });
    const task = await send(base, pay);
    const envelope = failure(task, 'BACKEND_ERROR');
    assert.equal(envelope['retryable'], true);
    assert.equal(x402Of(task)['x402.payment.status'], 'payment-completed');
    const response = task.artifacts?.[0].metadata?.['x402/payment-response'];
    assert.deepEqual(x402Of(task)['x402.payment.receipts'], [response]);
    const collected = await send(base, { ...pay, messageId: 'another' });
    assert.deepEqual(dataOf(collected), { delivered: true });
    assert.equal((await testbed.income()) - earned, 1_000n, 'paid once');
    const receipt = await receiptWhen(testbed.gateway, String(task.metadata['agent-commerce/requestId']), true);
    assert.equal(receipt.protocol, 'a2a');
  });
});

describe('paying for a task', () => {
  /** A proof for a challenge of this channel. */
  const paid = async (): Promise<string> => {
    const asked = await send(base, message('market_report', CITY));
    return testbed.buyer.pay(x402Of(asked)['x402.payment.required']);
  };

  it('in any carrier, or the same in all: delivered, exactly the price moves, and all members agree', async () => {
    const carriers: readonly ((proof: string) => readonly [Members, Headers?])[] = [
      (proof) => [message('market_report', { ...CITY, _payment: decode(proof) })],
      (proof) => [message('market_report', CITY, { metadata: { [PAYLOAD]: decode(proof) } })],
      (proof) => [message('market_report', CITY), { 'payment-signature': proof }],
      (proof) => {
        const input = { ...CITY, _payment: proof.replace(/=+$/, '') };
        const metadata = { [PAYLOAD]: decode(proof) };
        return [message('market_report', input, { metadata }), { 'payment-signature': proof }];
      },
    ];
    for (const carry of carriers) {
      const [bought, earned] = [await testbed.buyer.balance(), await testbed.income()];
      const task = await send(base, ...carry(await paid()));
      assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
      assert.deepEqual(dataOf(task), { ...CITY, currency: 'EUR', price: '12.50', volume: 340 });
      assert.equal(bought - (await testbed.buyer.balance()), PRICE_UNITS);
      assert.equal((await testbed.income()) - earned, PRICE_UNITS);
      const { metadata = {} } = task.artifacts?.[0] ?? {};
      const response = metadata['x402/payment-response'] as Members;
      assert.deepEqual([response['success'], response['payer']], [true, testbed.buyer.address.toLowerCase()]);
      assert.deepEqual(deliveryOf(task)['payment'], response);
      assert.deepEqual(metadata['agent-commerce/delivery'], deliveryOf(task));
      assert.deepEqual(x402Of(task), {
        'x402.payment.status': 'payment-completed',
        'x402.payment.receipts': [response],
      });
      const receipt = await receiptWhen(testbed.gateway, String(task.metadata['agent-commerce/requestId']), true);
      assert.deepEqual([receipt.protocol, receipt.id], ['a2a', response['receiptId']]);
      const events = await eventsUntil(testbed.gateway, receipt.requestId, 'resource.delivered');
      assert.ok(events.every(({ adapter }) => adapter === 'a2a'));
    }
  });

  it('a payment for a task is TASK_NOT_FOUND, says what to send, and buys with that', async () => {
    const activated = { 'a2a-extensions': 'https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2' };
    const asked = await postA2a(base, sendMessage(message('market_report', CITY)), { ...VERSION, ...activated });
    assert.equal(asked.headers['a2a-extensions'], undefined, 'no extension is active');
    const { id, status } = taskOf(asked);
    assert.equal(status.state, 'TASK_STATE_FAILED');
    assert.doesNotMatch(status.message?.parts[0].text ?? '', /taskId/);
    const [payload, earned] = [decode(await paid()), await testbed.income()];
    const metadata = { 'x402.payment.status': 'payment-submitted', [PAYLOAD]: payload };
    for (const parts of [[{ text: 'Here it is.' }], message('market_report', CITY)['parts']]) {
      const content = { ...message('market_report', CITY), taskId: id, parts, metadata };
      const error = errorOf(await postA2a(base, sendMessage(content)), 1);
      assert.deepEqual([error.code, error.data[0]?.reason], [-32004, 'TASK_NOT_FOUND']);
      assert.match(
        error.message,
        /Send the whole message again, without taskId: .*metadata\["x402\.payment\.payload"\]/,
      );
    }
    assert.equal(await testbed.income(), earned);
    const bought = await send(base, message('market_report', CITY, { metadata }));
    assert.equal(bought.status.state, 'TASK_STATE_COMPLETED');
  });

  it('two different proofs are bad parameters, and no money moves', async () => {
    const [one, other, earned] = [await paid(), await paid(), await testbed.income()];
    const twice = message('market_report', { ...CITY, _payment: one }, { metadata: { [PAYLOAD]: decode(other) } });
    for (const [content, headers] of [
      [twice, {}],
      [message('market_report', { ...CITY, _payment: one }), { 'payment-signature': other }],
    ] as const) {
      const error = errorOf(await postA2a(base, sendMessage(content), { ...VERSION, ...headers }), 1);
      assert.equal(error.code, -32602);
      assert.equal(error.data[0]?.fieldViolations?.[0]?.field, `message.metadata["${PAYLOAD}"]`);
    }
    assert.equal(await testbed.income(), earned);
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
  it('a refused proof: a fresh challenge, and the code of its reason', async () => {
    for (const { reason, field, at, to } of tried.values()) {
      const payload = decode(await paid());
      mutate(payload, at, to);
      const task = await send(base, message('market_report', CITY, { metadata: { [PAYLOAD]: payload } }));
      assert.equal(task.status.state, 'TASK_STATE_FAILED');
      const { error, payment } = dataOf(task) as { error: { reason: string }; payment: { envelope: object } };
      assert.equal(error.reason, reason, field);
      assert.deepEqual(x402Of(task), {
        'x402.payment.status': 'payment-failed',
        'x402.payment.error': codes[reason],
        'x402.payment.required': payment.envelope,
      });
    }
  });

  it('a buyer without money: INSUFFICIENT_FUNDS', async () => {
    const poor = await createBuyer(testbed.chain, 0n);
    const asked = await send(base, message('market_report', CITY));
    const proof = await poor.pay(x402Of(asked)['x402.payment.required']);
    const task = await send(base, message('market_report', { ...CITY, _payment: proof }));
    assert.equal(x402Of(task)['x402.payment.error'], 'INSUFFICIENT_FUNDS');
  });

  it('a proof that has bought its answer: DUPLICATE_NONCE, and no second payment is asked for', async () => {
    const proof = await paid();
    const pay = (_payment: string): Members => message('market_report', { ...CITY, _payment });
    assert.equal((await send(base, pay(proof))).status.state, 'TASK_STATE_COMPLETED');
    const earned = await testbed.income();
    const again = await send(base, pay(found(proof)));
    assert.equal(dataOf(again)['code'], 'PAYMENT_REPLAYED');
    assert.deepEqual(x402Of(again), {
      'x402.payment.status': 'payment-completed',
      'x402.payment.error': 'DUPLICATE_NONCE',
    });
    assert.equal(await testbed.income(), earned);
    const elsewhere = await send(base, message('market_report', { city: 'Lisboa', _payment: proof }));
    assert.equal(x402Of(elsewhere)['x402.payment.status'], 'payment-failed');
  });

  for (const [what, headers] of [
    ['the same message', {}],
    ['an idempotency key', { 'idempotency-key': 'order-4711' }],
  ] as const)
    it(`${what} gets its answer again, as a new task: paid once, run once`, async () => {
      const pay = message('market_report', { ...CITY, _payment: await paid() });
      const [earned, calls] = [await testbed.income(), testbed.backend.requests.length];
      const [first, again] = [await send(base, pay, headers), await send(base, pay, headers)];
      assert.deepEqual(dataOf(again), dataOf(first));
      assert.deepEqual([deliveryOf(first)['replayed'], deliveryOf(again)['replayed']], [undefined, true]);
      assert.notEqual(again.id, first.id);
      assert.equal((await testbed.income()) - earned, PRICE_UNITS);
      assert.equal(testbed.backend.requests.length - calls, 1);
    });
});

const JSON_TYPE = 'application/json';

const SPELLING = '{ "n": 12345678901234567890, "p": 1.50 }';
const BYTES = '"value":"YWJj","encoding":"base64"';

describe('the answer of the backend, as the data of a part', () => {
  for (const [what, sent, type, data, encoding] of [
    ['an object, in its own spelling', SPELLING, JSON_TYPE, SPELLING],
    ['a list', '[1.50]', JSON_TYPE, '{"value":[1.50]}'],
    ['a JSON text', '"a\\u00fc"', JSON_TYPE, '{"value":"a\\u00fc"}'],
    ['JSON null', 'null', JSON_TYPE, '{"value":null}'],
    ['another type of JSON', '{"a":1}', 'application/problem+json', '{"a":1}'],
    ['a text', 'Grüß "Gott"\n', 'text/plain; charset=utf-8', '{"value":"Grüß \\"Gott\\"\\n"}'],
    ['malformed JSON', '{', JSON_TYPE, '{"value":"{"}'],
    ['an empty answer', '', JSON_TYPE, '{"value":null}'],
    ['bytes', 'abc', 'image/png', `{${BYTES},"mediaType":"image/png"}`],
    ['compressed JSON', 'abc', JSON_TYPE, `{${BYTES},"mediaType":"application/json","contentEncoding":"gzip"}`, 'gzip'],
  ] as const)
    it(what, () => assert.equal(deliveredData(readContent(Buffer.from(sent), type, encoding)), data));
});
