import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { receiptWhen } from '../support/records.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { ask } from './ask.ts';
import { bring, replayed } from './bring.ts';
import { found, SPELLINGS, spellingsOfOneAuthorization } from './proofs.ts';

const INPUT = { city: 'Berlin' };
/** What `held` costs. */
const PRICE_UNITS = 1_000n;

describe('one authorization is one payment', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  it('nine spellings of one base64 text: one is accepted', async () => {
    const statuses: Record<string, number> = {};
    for (const { name, of } of SPELLINGS) {
      const proof = await testbed.proof('market_report', INPUT);
      const answer = await testbed.gateway.invoke('market_report', INPUT, { 'payment-signature': of(proof) });
      statuses[name] = answer.status;
      await answer.arrayBuffer();
    }
    assert.deepEqual(statuses, Object.fromEntries(SPELLINGS.map(({ name, accepted }) => [name, accepted ? 200 : 402])));
  });

  it('twenty spellings of one signature in parallel: one settlement, one call to the merchant, one answer for all', async () => {
    const { gateway, backend } = testbed;
    const before = await testbed.income();
    const spellings = spellingsOfOneAuthorization(await testbed.proof('held'));
    assert.equal(new Set(spellings).size, 20);
    backend.hold();
    backend.forget();
    const arrived = backend.nextRequest('/held');
    const answers = spellings.map((proof) => bring(gateway, 'held', {}, { proof }));
    await arrived;
    // Answered on a connection that was opened last: all the others are with the gateway.
    await ask(gateway.url, { method: 'GET', path: '/health', headers: {} });
    backend.release();
    const all = await Promise.all(answers);
    const others = all.filter(({ status }) => status !== 200);
    // A copy without a slot is answered at once that the call is in flight, and gets its answer
    // when it asks again.
    assert.ok(all.length - others.length >= 2, 'copies that wait have the answer');
    for (const one of others) replayed(one, 'in_flight');
    const later = await Promise.all(spellings.map((proof) => bring(gateway, 'held', {}, { proof })));
    const answered = [...all.filter(({ status }) => status === 200), ...later.filter(({ status }) => status === 200)];
    for (const { bytes } of answered) assert.equal(bytes.toString(), '{"held":true}');
    assert.equal(new Set(answered.map(({ payment }) => JSON.stringify(payment))).size, 1);
    assert.equal((await testbed.income()) - before, PRICE_UNITS);
    assert.equal(backend.requests.length, 1);
  });

  it('a copy that comes after the delivery, without the token of the buyer: 409', async () => {
    const proof = await testbed.proof('market_report', INPUT);
    const first = await bring(testbed.gateway, 'market_report', INPUT, { proof });
    await receiptWhen(testbed.gateway, first.requestId, true);
    for (const spelling of spellingsOfOneAuthorization(found(proof)))
      replayed(await bring(testbed.gateway, 'market_report', INPUT, { proof: spelling }), 'delivered');
  });
});
