import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { relayTo } from '../support/hostile-facilitator.ts';
import { eventually } from '../support/records.ts';
import { openScriptedTestbed, openTestbed, type ScriptedTestbed, type Testbed } from '../support/testbed.ts';
import { ask } from './ask.ts';
import { found } from './proofs.ts';

interface Conflict {
  readonly code: string;
  readonly retryable: boolean;
  readonly details: { readonly state: string; readonly payment?: Record<string, unknown> };
}

const INPUT = { city: 'Berlin' };

describe('the same proof again is answered by its record', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  const bring = (id: string, input: unknown, proof: string): Promise<Response> =>
    testbed.gateway.invoke(id, input, { 'payment-signature': proof });
  const conflict = async (answer: Response): Promise<Conflict> => {
    assert.equal(answer.status, 409);
    const body = (await answer.json()) as Conflict;
    assert.equal(body.code, 'PAYMENT_REPLAYED');
    return body;
  };

  it('delivered: 409 with what was paid, and nothing moves again', async () => {
    const proof = await testbed.proof('market_report', INPUT);
    const first = await bring('market_report', INPUT, proof);
    assert.equal(first.status, 200);
    await first.arrayBuffer();
    const before = await testbed.income();
    const body = await eventually(async () => {
      const again = await conflict(await bring('market_report', INPUT, found(proof)));
      return again.details.state === 'delivered' ? again : undefined;
    }, 'the delivery to be written');
    assert.equal(body.retryable, false);
    assert.equal(body.details.payment?.['amount'], '0.01');
    assert.match(String(body.details.payment?.['externalReference']), /^0x[0-9a-f]{64}$/);
    assert.equal(await testbed.income(), before);
  });

  it('another input or another resource of the same price: 409 "used", and nothing about the payment', async () => {
    const proof = await testbed.proof('market_report', INPUT);
    const first = await bring('market_report', INPUT, proof);
    await first.arrayBuffer();
    for (const input of [{ city: 'Lisboa' }, { city: 'berlin' }]) {
      const body = await conflict(await bring('market_report', input, proof));
      assert.deepEqual(body.details, { state: 'used' });
    }
    const cheap = await testbed.proof('noisy');
    await (await bring('noisy', {}, cheap)).arrayBuffer();
    const elsewhere = await conflict(await bring('greeting', {}, cheap));
    assert.deepEqual(elsewhere.details, { state: 'used' });
  });

  it('a proof for another resource of the same price is refused before anything moves', async () => {
    const before = await testbed.income();
    const answer = await bring('greeting', {}, await testbed.proof('noisy'));
    const body = (await answer.json()) as { error: { reason: string } };
    assert.deepEqual([answer.status, body.error.reason], [402, 'invalid_payment_requirements']);
    assert.equal(await testbed.income(), before);
  });

  it('running: waits for it and has its answer; after three seconds 409 "in_flight", retryable', async () => {
    const { backend } = testbed;
    backend.hold();
    const arrived = backend.nextRequest('/held');
    const proof = await testbed.proof('held');
    const first = bring('held', {}, proof);
    await arrived;
    const since = performance.now();
    const answer = await bring('held', {}, proof);
    assert.ok(performance.now() - since > 2_900);
    assert.equal(answer.headers.get('retry-after'), '1');
    const body = await conflict(answer);
    assert.deepEqual([body.details.state, body.retryable], ['in_flight', true]);
    const joined = bring('held', {}, proof);
    // Answered on a connection that was opened last: the other one is with the gateway.
    await ask(testbed.gateway.url, { method: 'GET', path: '/health', headers: {} });
    backend.release();
    const answers = await Promise.all([first, joined]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200],
    );
    const [one, two] = answers.map(({ headers }) => headers.get('payment-response'));
    assert.equal(one, two);
    for (const { body: stream } of answers) await stream?.cancel();
  });
});

describe('a settlement whose outcome was lost on the way', () => {
  let world: ScriptedTestbed;
  let testbed: ScriptedTestbed['testbed'];
  let hostile: ScriptedTestbed['hostile'];
  let official: ScriptedTestbed['official'];
  before(async () => {
    world = await openScriptedTestbed();
    ({ testbed, hostile, official } = world);
  });
  after(() => world?.close());

  it('is found on the chain: the same proof collects, and the buyer pays once', async () => {
    const settleThenBreak = async (call: Parameters<ReturnType<typeof relayTo>>[0]) => {
      await relayTo(official.url)(call);
      return { kind: 'reset' } as const;
    };
    hostile.script({ verify: relayTo(official.url), settle: settleThenBreak });
    const before = await testbed.income();
    const proof = await testbed.proof('market_report', INPUT);
    const statuses: number[] = [];
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const answer = await testbed.gateway.invoke('market_report', INPUT, { 'payment-signature': proof });
      statuses.push(answer.status);
      await answer.arrayBuffer();
      if (answer.status === 200) break;
    }
    assert.ok(!statuses.includes(402));
    assert.equal(statuses.at(-1), 200);
    assert.equal((await testbed.income()) - before, 10_000n);
  });

  it('a facilitator that lies about success is not believed: the chain shows no transfer', async () => {
    hostile.script({});
    const proof = await testbed.proof('market_report', INPUT);
    const before = testbed.backend.requests.length;
    const answer = await testbed.gateway.invoke('market_report', INPUT, { 'payment-signature': proof });
    const body = (await answer.json()) as { code: string };
    assert.deepEqual([answer.status, body.code], [502, 'PAYMENT_SETTLEMENT_FAILED']);
    assert.equal(testbed.backend.requests.length, before, 'the merchant was not called');
  });
});
