import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ACP_ERRORS, AcpError } from '../../../src/adapters/acp/error.ts';
import { readMetrics } from '../../support/read-metrics.ts';
import { eventually } from '../../support/records.ts';
import { askAcp, assertAcpError, CART, OTHER_TOKEN, sharedCheckoutTestbed } from './testbed.ts';

const PAYMENT = {
  payment_data: { handler_id: 'card', instrument: { type: 'card', credential: { type: 'spt', token: 'spt_1' } } },
};

const open = sharedCheckoutTestbed();

const ask = (key: string, path = '/checkout_sessions', body: object = CART, headers = {}) =>
  askAcp(open.gateway.url, { path, body: JSON.stringify(body), headers: { 'idempotency-key': key, ...headers } });
const session = async (): Promise<string> =>
  `/checkout_sessions/${(JSON.parse((await ask(crypto.randomUUID())).text) as { id: string }).id}`;
const lineOf = (id: unknown): Promise<Record<string, unknown>> =>
  eventually(async () => {
    const lines = open.gateway.logLines.map((line) => JSON.parse(line) as Record<string, unknown>);
    return lines.find(({ requestId, msg }) => requestId === id && msg === 'request completed');
  }, 'the line of the request');

describe('the answer to a repeated checkout call', () => {
  it('is the first one again, byte by byte, and is marked so', async () => {
    const first = await ask('again');
    const second = await ask('again');
    assert.deepEqual([second.status, second.text], [first.status, first.text]);
    assert.equal(first.headers['idempotent-replayed'], undefined);
    assert.equal(second.headers['idempotent-replayed'], 'true');
    assert.equal(second.headers['idempotency-key'], 'again');
    assert.equal((await lineOf(second.headers['x-request-id']))['outcome'], 'replayed');
  });

  it('is a refusal again when the first one was, under its own code in the log', async () => {
    const path = `${await session()}/complete`;
    const gone = { type: 'invalid_request', code: 'gone', message: 'no such session' };
    open.backend.misbehave({ kind: 'status', status: 404, acts: false, document: gone });
    const [first, second] = [await ask('lost', path, PAYMENT), await ask('lost', path, PAYMENT)];
    assertAcpError(first, 404, 'checkout_session_not_found');
    assertAcpError(second, 404, 'checkout_session_not_found');
    assert.equal(second.headers['idempotent-replayed'], 'true');
    assert.equal((await lineOf(second.headers['x-request-id']))['outcome'], 'checkout_session_not_found');
  });

  it('is a conflict when the body is another one, and the backend is not called', async () => {
    await ask('conflict');
    const { length } = open.backend.calls;
    assertAcpError(
      await ask('conflict', '/checkout_sessions', { ...CART, currency: 'eur' }),
      422,
      'idempotency_conflict',
    );
    assert.equal(open.backend.calls.length, length);
  });

  it('is a new one for another client: each has its own keys', async () => {
    const mine = await ask('shared');
    const theirs = await ask('shared', '/checkout_sessions', CART, { authorization: `Bearer ${OTHER_TOKEN}` });
    assert.equal(theirs.status, 201);
    assert.notEqual(theirs.text, mine.text);
  });

  it('comes later while the first call runs, and for another key of the session as well', async () => {
    const path = `${await session()}/complete`;
    const { promise, resolve } = Promise.withResolvers<void>();
    open.backend.misbehave({ kind: 'wait', acts: 'after', until: promise }, { operation: 'completeCheckoutSession' });
    const arrived = open.backend.arrived({ operation: 'completeCheckoutSession' });
    const first = ask('running-key', path, PAYMENT);
    await arrived;
    const same = await ask('running-key', path, PAYMENT);
    assertAcpError(same, 409, 'idempotency_in_flight');
    const other = await ask('other', path, PAYMENT);
    assertAcpError(other, 409, 'checkout_session_conflict');
    for (const { headers } of [same, other]) assert.match(String(headers['retry-after']), /^[1-9]\d*$/);
    resolve();
    assert.equal((await first).status, 200);
  });
});

describe('a checkout call whose backend fails', () => {
  it('fails with a message of the gateway, and runs again', async () => {
    open.backend.misbehave({ kind: 'status', status: 500, acts: false });
    const failed = await ask('retry');
    const document = assertAcpError(failed, 502, 'processing_error');
    assert.equal(document['message'], ACP_ERRORS.processing_error.message);
    assert.equal(failed.headers['idempotency-key'], 'retry');
    const retried = await ask('retry');
    assert.equal(retried.status, 201);
    assert.equal(retried.headers['idempotent-replayed'], undefined);
  });

  it('gets no header of the backend', async () => {
    const { headers } = await ask('headers');
    const known = [
      'x-request-id',
      'idempotency-key',
      'cache-control',
      'content-type',
      'content-length',
      'x-content-type-options',
      'date',
      'connection',
    ];
    assert.deepEqual(
      Object.keys(headers).filter((name) => !known.includes(name)),
      [],
    );
  });
});

describe('the log and the metrics of a checkout call', () => {
  it('have its operation and its outcome, and neither session, key nor token', async () => {
    const path = await session();
    const answer = await askAcp(open.gateway.url, { method: 'GET', path: `${path}?access_token=never`, headers: {} });
    const line = await lineOf(answer.headers['x-request-id']);
    assert.deepEqual(
      [line['path'], line['channel'], line['resource'], line['outcome']],
      ['/acp/checkout_sessions/*', 'acp', 'getCheckoutSession', 'delivered'],
    );
    const metrics = await readMetrics(open.gateway.managementUrl);
    assert.match(metrics, /acg_calls_total\{resource="getCheckoutSession",channel="acp",outcome="delivered"\} [1-9]/);
    for (const secret of ['cs_', 'access_token', 'running-key', OTHER_TOKEN])
      assert.ok(!open.gateway.logLines.join('').includes(secret) && !metrics.includes(secret), secret);
  });

  it('have a resource only once the caller is known', async () => {
    const answer = await askAcp(open.gateway.url, { headers: { authorization: undefined } });
    const line = await lineOf(answer.headers['x-request-id']);
    assert.deepEqual([line['channel'], line['resource'], line['outcome']], ['acp', undefined, 'unauthorized']);
  });
});

it('every failure of the table is a document with its own status', () => {
  for (const [code, { status }] of Object.entries(ACP_ERRORS)) {
    const error = new AcpError(code as keyof typeof ACP_ERRORS);
    assert.deepEqual([error.status, Object.keys(error.document)], [status, ['type', 'code', 'message']]);
  }
});
