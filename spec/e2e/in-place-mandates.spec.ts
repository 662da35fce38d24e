import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { callInPlace } from '../support/in-place.ts';
import { ask, assertEnvelope } from './ask.ts';
import { type Body, type Call, CHANNELS, type Reply } from './mandate-channels.ts';
import { type MandateSeller, openMandateSeller } from './mandate-seller.ts';

const REPORT_UNITS = 10_000n;
const BERLIN = { city: 'Berlin' };
const GUARDED = { expose: ['http', 'origin'], authorization: { required: ['ap2'] } };

describe('a mandate of a call in place', () => {
  let testbed: MandateSeller;
  before(async () => {
    const resources = { market_report: GUARDED, free_greeting: GUARDED };
    testbed = await openMandateSeller(['market_report', 'free_greeting'], {}, { overrides: { resources } });
  });
  after(() => testbed?.close());

  /** In place is HTTP at another address. */
  const send = (
    call: Omit<Call, 'resourceId' | 'input'>,
    id = 'market_report',
    input: object = BERLIN,
  ): Promise<Reply> => {
    const { gateway } = testbed;
    const invoke: typeof gateway.invoke = (resourceId, given, headers) =>
      callInPlace(gateway, resourceId, given, headers);
    return CHANNELS.http({ ...gateway, invoke }, { resourceId: id, input, ...call });
  };
  const asked = async (): Promise<{ readonly proof: string; readonly mandate: string }> => {
    const { body } = await send({});
    assert.equal(body.code, 'PAYMENT_REQUIRED');
    const purchase = testbed.purchaseOf('market_report', 'Market report', BERLIN, '0.01');
    const proof = await testbed.buyer.pay(body.payment?.envelope);
    return { proof, mandate: testbed.mandateFor(body, { purchase, payment: true }).header };
  };
  const earned = async (run: () => Promise<unknown>): Promise<bigint> => {
    const income = await testbed.income();
    await run();
    return (await testbed.income()) - income;
  };

  it('is asked for beside the payment, and nothing moves without it', async () => {
    const { proof, mandate } = await asked();
    assert.equal(await earned(async () => assert.equal((await send({ proof })).code, 'AUTHORIZATION_REQUIRED')), 0n);
    const bought = await earned(async () => {
      const reply = await send({ proof, mandate });
      assert.equal(reply.code, undefined, reply.raw);
      assert.ok(reply.receipt !== undefined);
    });
    assert.equal(bought, REPORT_UNITS);
  });

  it('is ignored by HEAD, which runs nothing that needs one', async () => {
    const { proof, mandate } = await asked();
    testbed.backend.forget();
    const headers = { 'payment-signature': proof, 'agent-authorization': mandate };
    const head = (path: string) => ask(testbed.gateway.url, { method: 'HEAD', path, headers });
    assert.equal((await head('/reports/Berlin')).status, 402);
    assert.equal((await head('/greeting')).status, 403);
    assert.equal(testbed.backend.requests.length, 0);
    assert.equal((await send({ proof, mandate })).code, undefined, 'both are as good as before');
  });

  it('is enough for a free resource', async () => {
    const missing = await ask(testbed.gateway.url, { method: 'GET', path: '/greeting', headers: {} });
    const body = assertEnvelope(missing, 'AUTHORIZATION_REQUIRED') as Body;
    const { header } = testbed.mandateFor(body, { purchase: testbed.purchaseOf('free_greeting', 'Greeting', {}) });
    const headers = { 'agent-authorization': header };
    const answer = await ask(testbed.gateway.url, { method: 'GET', path: '/greeting', headers });
    assert.deepEqual([answer.status, answer.text], [200, 'Grüß Gott\n']);
  });
});
