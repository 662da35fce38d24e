import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { type Bed, bytesOf, COMPLETE, openBed, SETTINGS, said, TIMEOUT_MS } from './bed.ts';

const DAY_MS = 86_400_000;

/** acp 12.4, on the embedded store. */
describe('a keyed call', () => {
  let bed: Bed;
  beforeEach(() => {
    bed = openBed();
  });
  afterEach(() => bed.close());

  it('runs once, and every repetition is given the same bytes', async () => {
    const gateway = bed.gateway();
    const first = await gateway.run();
    assert.equal(said(first), '200 backend {"by":"completeCheckoutSession","post":1}');
    for (const _again of [1, 2, 3]) {
      bed.pass(60_000);
      const kept = await gateway.run();
      assert.match(said(kept), /^200 kept /);
      assert.deepEqual(bytesOf(kept), bytesOf(first));
    }
    assert.equal(bed.merchant.heard.length, 1);
    assert.deepEqual(gateway.told, ['first', 'done', 'done', 'done']);
  });

  it('is kept for at least the retention, on another gateway too; afterwards the key is a new one', async () => {
    await bed.gateway().run();
    bed.pass(SETTINGS.retentionMs - 1);
    assert.match(said(await bed.gateway().run()), /^200 kept /);
    bed.pass(2);
    assert.match(said(await bed.gateway().run()), /^200 backend /);
  });

  it('with another body is a conflict, whatever became of the first', async () => {
    const gateway = bed.gateway();
    const other = { ...COMPLETE, body: { payment_data: { token: 'other' } } };
    bed.merchant.next({ acts: false, says: { unknown: 'timeout' } });
    await gateway.run();
    assert.equal(said(await gateway.run(other)), 'conflict');
    await gateway.run();
    assert.equal(said(await gateway.run(other)), 'conflict');
    assert.equal(bed.merchant.heard.length, 2);
  });

  it('is the same call when its body is spelled otherwise', async () => {
    const gateway = bed.gateway();
    const call = { ...COMPLETE, body: { a: 1, b: [{ c: 2, d: 3 }] } };
    await gateway.run(call);
    assert.match(said(await gateway.run({ ...call, body: { b: [{ d: 3, c: 2 }], a: 1 } })), /^200 kept /);
    assert.equal(said(await gateway.run({ ...call, body: { ...call.body, e: null } })), 'conflict');
  });

  it('keeps a refusal below 500 like any other answer', async () => {
    const gateway = bed.gateway();
    bed.merchant.next({ acts: false, says: 'refusal' });
    assert.equal(said(await gateway.run()), '409 backend {"refused":1}');
    assert.equal(said(await gateway.run()), '409 kept {"refused":1}');
    assert.equal(bed.merchant.heard.length, 1);
  });

  it('that certainly did not happen leaves nothing: the key is free, also for another body', async () => {
    const gateway = bed.gateway();
    bed.merchant.next({ acts: false, says: 'not_executed' });
    assert.equal(said(await gateway.run()), 'nobody there');
    assert.match(said(await gateway.run({ ...COMPLETE, body: {} })), /^200 backend /);
    assert.deepEqual(gateway.told, ['first', 'first']);
  });

  it('that did not happen after one that may have still counts as unknown', async () => {
    const gateway = bed.gateway();
    bed.merchant.next({ acts: false, says: { unknown: 'reset' } }, { acts: false, says: 'not_executed' });
    await gateway.run();
    assert.equal(said(await gateway.run()), 'nobody there');
    assert.match(said(await gateway.run()), /^200 backend /);
    assert.deepEqual(gateway.told, ['first', 'unknown: reset', 'again', 'again']);
    assert.deepEqual(
      bed.merchant.heard.map(({ number }) => number),
      [1, 2, 3],
    );
  });

  it('that runs is in flight for everybody else: a longer wait the longer it runs, but not beyond its lease', async () => {
    bed.merchant.next({ acts: true, says: 'lost' });
    await bed.gateway().begin();
    const waits: string[] = [];
    for (const ms of [0, 4_500, 10_000, 13_000]) {
      bed.pass(ms);
      waits.push(said(await bed.gateway().run()));
    }
    assert.deepEqual(waits, ['in_flight 1', 'in_flight 5', 'in_flight 14', 'in_flight 1']);
    assert.equal(bed.merchant.heard.length, 1);
  });

  it('20 at the same time: one runs, nineteen are in flight', async () => {
    const ends = await Promise.all(Array.from({ length: 20 }, () => bed.gateway().run()));
    assert.equal(ends.filter((end) => end.kind === 'answered').length, 1);
    assert.equal(ends.filter((end) => end.kind === 'in_flight').length, 19);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  it('gives the merchant one key over all attempts and gateways, and counts the attempts', async () => {
    bed.merchant.next({ acts: false, says: { unknown: 'status' } }, { acts: false, says: { unknown: 'timeout' } });
    for (const _attempt of [1, 2, 3]) await bed.gateway().run();
    assert.equal(new Set(bed.merchant.heard.map(({ backendKey }) => backendKey)).size, 1);
    assert.deepEqual(
      bed.merchant.heard.map(({ number }) => number),
      [1, 2, 3],
    );
  });

  it('is another one on another operation, session, client or deployment, even with one key', async () => {
    const gateway = bed.gateway();
    const calls = [
      COMPLETE,
      { ...COMPLETE, sessionId: 'cs_2' },
      { ...COMPLETE, operation: 'updateCheckoutSession' as const },
      { ...COMPLETE, operation: 'cancelCheckoutSession' as const },
      { ...COMPLETE, operation: 'createCheckoutSession' as const, sessionId: undefined },
      { ...COMPLETE, clientId: 'another' },
    ];
    for (const call of calls) assert.match(said(await gateway.run(call)), /^200 backend /, JSON.stringify(call));
    for (const call of calls) assert.match(said(await gateway.run(call)), /^200 kept /);
    assert.equal(new Set(bed.merchant.heard.map(({ backendKey }) => backendKey)).size, calls.length);
  });

  for (const operation of ['createCheckoutSession', 'updateCheckoutSession'] as const)
    it(`${operation} runs again after an unknown end, without a look at the session`, async () => {
      const gateway = bed.gateway({ settings: { merchant: 'read-back-only' } });
      const call = {
        ...COMPLETE,
        operation,
        ...(operation === 'createCheckoutSession' ? { sessionId: undefined } : {}),
      };
      bed.merchant.next({ acts: true, says: { unknown: 'invalid_document' } });
      assert.equal(said(await gateway.run(call)), 'failed: invalid_document');
      assert.match(said(await gateway.run(call)), /^200 backend /);
      assert.equal(bed.merchant.reads(), 0);
    });

  it('whose end is unknown is remembered for seven days, however short answers are kept', async () => {
    const gateway = bed.gateway({ settings: { retentionMs: DAY_MS } });
    bed.merchant.next({ acts: true, says: { unknown: 'timeout' } });
    await gateway.run();
    bed.pass(7 * DAY_MS - 1_000);
    assert.match(said(await gateway.run()), /^200 session /);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  it('of a gateway that died is remembered as long', async () => {
    bed.merchant.next({ acts: true, says: 'lost' });
    await bed.gateway({ settings: { retentionMs: DAY_MS } }).begin();
    bed.pass(7 * DAY_MS + TIMEOUT_MS);
    assert.match(said(await bed.gateway({ settings: { retentionMs: DAY_MS } }).run()), /^200 session /);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });
});
