import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { settleWindowMs } from '../../src/checkouts/leases.ts';
import { type Bed, COMPLETE, openBed, said, TIMEOUT_MS } from './bed.ts';

const OTHER_KEY = { ...COMPLETE, key: 'key-2' };
const OTHER_CLIENT = { ...COMPLETE, clientId: 'another', body: { payment_data: { token: 'other' } } };
const CANCEL = { ...COMPLETE, operation: 'cancelCheckoutSession' as const, key: 'key-3' };
const LEASE_MS = TIMEOUT_MS + 3_000;

/** acp 12.7, on the embedded store. */
describe('complete and cancel of one session', () => {
  let bed: Bed;
  beforeEach(() => {
    bed = openBed();
  });
  afterEach(() => bed.close());

  for (const [name, call] of [
    ['another key', OTHER_KEY],
    ['another client', OTHER_CLIENT],
    ['the other operation', CANCEL],
  ] as const)
    it(`exclude one another: ${name} has to wait while one runs`, async () => {
      bed.merchant.next({ acts: true, says: 'lost' });
      await bed.gateway().begin();
      bed.pass(2_000);
      const gateway = bed.gateway();
      assert.equal(said(await gateway.run(call)), 'session_busy 2');
      assert.deepEqual(gateway.told, ['session_busy']);
      assert.equal(bed.merchant.heard.length, 1);
    });

  it('do not concern another session, nor updates of this one', async () => {
    bed.merchant.next({ acts: true, says: 'lost' });
    await bed.gateway().begin();
    assert.match(said(await bed.gateway().run({ ...COMPLETE, sessionId: 'cs_2' })), /^200 backend /);
    const update = { ...COMPLETE, operation: 'updateCheckoutSession' as const };
    assert.match(said(await bed.gateway().run(update)), /^200 backend /);
  });

  it('do not exclude one another without the lock', async () => {
    const gateway = bed.gateway({ settings: { sessionLock: false } });
    bed.merchant.next({ acts: false, says: 'lost' });
    await gateway.begin();
    assert.match(said(await gateway.run(OTHER_KEY)), /^200 backend /);
  });

  it('a new key after an unknown end finds the order that the old one made', async () => {
    bed.merchant.next({ acts: true, says: { unknown: 'timeout' } });
    await bed.gateway().run();
    assert.match(said(await bed.gateway().run(OTHER_KEY)), /^200 session /);
    assert.match(said(await bed.gateway().run()), /^200 session /);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  it('a new key after a gateway died finds it too, once the lease is over', async () => {
    bed.merchant.next({ acts: true, says: 'lost' });
    await bed.gateway().begin();
    bed.pass(LEASE_MS);
    const gateway = bed.gateway();
    assert.match(said(await gateway.run(OTHER_KEY)), /^200 session /);
    assert.deepEqual(gateway.told, ['again', 'lease expired']);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  it('a new key after a timeout waits for what may come late: the merchant cannot know it by this key', async () => {
    bed.merchant.next({ acts: false, says: { unknown: 'timeout' }, tookMs: TIMEOUT_MS });
    await bed.gateway().run();
    for (const ms of [0, 10_000, settleWindowMs(TIMEOUT_MS) - TIMEOUT_MS - 10_000]) {
      bed.pass(ms);
      assert.match(said(await bed.gateway().run(OTHER_KEY)), /^session_busy /);
    }
    assert.equal(bed.merchant.heard.length, 1);
    bed.pass(1);
    assert.match(said(await bed.gateway().run(OTHER_KEY)), /^200 backend /);
  });

  it('a new key after a timeout need not wait where the merchant failed by itself, nor does a cancel', async () => {
    for (const [sessionId, why, call] of [
      ['cs_a', 'status', OTHER_KEY],
      ['cs_b', 'timeout', CANCEL],
    ] as const) {
      bed.merchant.next({ acts: false, says: { unknown: why } });
      await bed.gateway().run({ ...COMPLETE, sessionId });
      assert.match(said(await bed.gateway().run({ ...call, sessionId })), /^200 backend /);
    }
  });

  it('a new key after an attempt that certainly did not happen runs at once', async () => {
    bed.merchant.next({ acts: false, says: 'not_executed' });
    await bed.gateway().run();
    assert.match(said(await bed.gateway().run(OTHER_KEY)), /^200 backend /);
    assert.equal(bed.merchant.reads(), 0);
  });

  it('a refused cancel does not hide a complete that may have happened', async () => {
    bed.merchant.next({ acts: true, says: { unknown: 'timeout' } }, { acts: false, says: 'refusal' });
    await bed.gateway().run();
    assert.match(said(await bed.gateway().run(CANCEL)), /^409 backend /);
    assert.match(said(await bed.gateway().run(OTHER_KEY)), /^200 session /);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  it('an attempt that has only read leaves the end to the key that it belongs to', async () => {
    bed.merchant.next({ acts: false, says: { unknown: 'status' } });
    await bed.gateway().run();
    bed.merchant.nextReads({ says: 'in_progress' }, { says: 'in_progress' }, { says: 'unreadable' });
    assert.match(said(await bed.gateway().run(OTHER_KEY)), /^session_busy /);
    assert.match(said(await bed.gateway().run()), /^in_flight /);
    assert.match(said(await bed.gateway().run()), /^200 backend /);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  it('ends whose key is not this one: the caller is told of the session, not of its key', async () => {
    bed.merchant.next({ acts: false, says: { unknown: 'timeout' } });
    await bed.gateway().run();
    bed.merchant.nextReads({ says: 'in_progress' });
    assert.equal(said(await bed.gateway().run(OTHER_KEY)), 'session_busy 1');
  });

  it('a session that cannot be read: another one runs only as long as it may', async () => {
    bed.merchant.next({ acts: false, says: { unknown: 'timeout' }, tookMs: TIMEOUT_MS });
    await bed.gateway().run();
    for (const [ms, kind] of [
      [0, 'session_busy'],
      [settleWindowMs(TIMEOUT_MS) - TIMEOUT_MS, 'session_busy'],
      [1, 'session_unknown'],
      [60_000, 'session_unknown'],
    ] as const) {
      bed.pass(ms);
      bed.merchant.nextReads({ says: 'unreadable' });
      assert.match(said(await bed.gateway().run(OTHER_KEY)), new RegExp(`^${kind} `), `${ms}`);
    }
    bed.merchant.nextReads({ says: 'in_progress' });
    assert.match(said(await bed.gateway().run(OTHER_KEY)), /^session_busy /);
    assert.match(said(await bed.gateway().run(OTHER_KEY)), /^200 backend /);
  });

  for (const why of ['status', 'invalid_document'] as const)
    it(`a session that cannot be read after an answer, ${why}: none runs, for what answered is over`, async () => {
      bed.merchant.next({ acts: false, says: { unknown: why } });
      await bed.gateway().run();
      bed.merchant.nextReads({ says: 'unreadable' });
      assert.match(said(await bed.gateway().run(OTHER_KEY)), /^session_unknown /);
      assert.match(said(await bed.gateway().run(OTHER_KEY)), /^200 backend /);
    });

  it('takes turns: whoever waited runs after a known end', async () => {
    bed.merchant.next({ acts: false, says: 'refusal' });
    assert.match(said(await bed.gateway().run(CANCEL)), /^409 backend /);
    assert.match(said(await bed.gateway().run()), /^200 backend /);
    assert.equal(bed.merchant.reads(), 0);
  });
});
