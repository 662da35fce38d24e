import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { CheckoutClaims, Unknown } from '../../src/checkouts/claims.ts';
import { settleWindowMs } from '../../src/checkouts/leases.ts';
import { type Bed, bytesOf, COMPLETE, openBed, said, TIMEOUT_MS } from './bed.ts';

const CANCEL = { ...COMPLETE, operation: 'cancelCheckoutSession' as const };
const WINDOW_MS = settleWindowMs(TIMEOUT_MS);
const READ_BACK_ONLY = { settings: { merchant: 'read-back-only' as const } };

/** Acts, or does not, and nobody hears of it. */
const unheard = (acts: boolean, why: Unknown = 'timeout') => ({ acts, says: { unknown: why } });

/** acp 12.5, on the embedded store. */
describe('a call whose earlier attempt has an unknown end', () => {
  let bed: Bed;
  beforeEach(() => {
    bed = openBed();
  });
  afterEach(() => bed.close());

  for (const call of [COMPLETE, CANCEL])
    for (const why of ['timeout', 'reset', 'status', 'invalid_document'] as const)
      it(`${call.operation}, ${why}, happened: answered with the session, and from then on with the same bytes`, async () => {
        const gateway = bed.gateway();
        bed.merchant.next(unheard(true, why));
        assert.equal(said(await gateway.run(call)), `failed: ${why}`);
        const found = await gateway.run(call);
        assert.equal(said(found), '200 session {"read":1}');
        const kept = await gateway.run(call);
        assert.match(said(kept), /^200 kept /);
        assert.deepEqual(bytesOf(kept), bytesOf(found));
        assert.equal(bed.merchant.heard.length, 1);
        assert.deepEqual(gateway.told, ['first', `unknown: ${why}`, 'again', 'done']);
      });

  it('did not happen: runs again with the same key of the merchant', async () => {
    bed.merchant.next(unheard(false));
    await bed.gateway().run();
    assert.match(said(await bed.gateway().run()), /^200 backend /);
    const [one, two] = bed.merchant.heard;
    assert.equal(one?.backendKey, two?.backendKey);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  it('is under way at the merchant: stays unknown, and is answered once it is done', async () => {
    const gateway = bed.gateway();
    bed.merchant.next(unheard(true));
    await gateway.run();
    bed.pass(3_000);
    bed.merchant.nextReads({ says: 'in_progress' });
    assert.equal(said(await gateway.run()), 'in_flight 3');
    assert.match(said(await gateway.run()), /^200 session /);
    assert.deepEqual(gateway.told, ['first', 'unknown: timeout', 'again', 'unknown: in_progress', 'again']);
    assert.equal(bed.merchant.heard.length, 1);
  });

  it('cannot be read: runs again where the merchant goes by keys', async () => {
    const gateway = bed.gateway();
    bed.merchant.next(unheard(false));
    await gateway.run();
    bed.merchant.nextReads({ says: 'unreadable' });
    assert.match(said(await gateway.run()), /^200 backend /);
  });

  it('cannot be read, and had another key: does not run, for the merchant cannot know it by this one', async () => {
    const gateway = bed.gateway();
    bed.merchant.next(unheard(true));
    await gateway.run();
    bed.merchant.nextReads({ says: 'unreadable' });
    assert.equal(said(await gateway.run({ ...COMPLETE, key: 'key-2' })), 'session_busy 1');
    assert.match(said(await gateway.run({ ...COMPLETE, key: 'key-2' })), /^200 session /);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  for (const says of ['refusal', 'declined'] as const)
    it(`runs again as the earlier one comes to its end, ${says}: answered with the session, for the key was not refused`, async () => {
      const gateway = bed.gateway();
      bed.merchant.next(unheard(false), { acts: true, says });
      await gateway.run();
      assert.match(said(await gateway.run()), /^200 session /);
      assert.match(said(await gateway.run()), /^200 kept /);
      assert.equal(bed.merchant.heard.length, 2);
    });

  it('runs again while the merchant still works on it, and is refused for that: the refusal is not kept', async () => {
    for (const operation of ['completeCheckoutSession', 'updateCheckoutSession'] as const) {
      const [gateway, call] = [bed.gateway(), { ...COMPLETE, operation }];
      bed.merchant.next(unheard(false), { acts: false, says: 'refusal' });
      await gateway.run(call);
      assert.match(said(await gateway.run(call)), /^409 backend /);
      assert.match(said(await gateway.run(call)), /^200 backend /);
      assert.match(said(await gateway.run(call)), /^200 kept /);
    }
  });

  it('runs again, is refused, and the session is at work: stays unknown', async () => {
    const gateway = bed.gateway();
    bed.merchant.next(unheard(false), { acts: true, says: 'declined' });
    await gateway.run();
    bed.merchant.nextReads({}, { says: 'in_progress' });
    assert.match(said(await gateway.run()), /^in_flight /);
    assert.match(said(await gateway.run()), /^200 session /);
  });

  it('runs again and is declined: that is kept', async () => {
    const gateway = bed.gateway();
    bed.merchant.next(unheard(false), { acts: false, says: 'declined' });
    await gateway.run();
    assert.match(said(await gateway.run()), /^422 backend /);
    assert.match(said(await gateway.run()), /^422 kept /);
  });

  it('can be read neither before it runs again nor after it is declined: that is kept, the merchant goes by keys', async () => {
    const gateway = bed.gateway();
    bed.merchant.next(unheard(false), { acts: false, says: 'declined' });
    await gateway.run();
    bed.merchant.nextReads({ says: 'unreadable' }, { says: 'unreadable' });
    assert.match(said(await gateway.run()), /^422 backend /);
    assert.match(said(await gateway.run()), /^422 kept /);
  });

  it('read for longer than the lease allows: the lease is renewed before the merchant is called', async () => {
    bed.merchant.next(unheard(false));
    await bed.gateway().run();
    const slow = bed.gateway();
    bed.merchant.nextReads({ tookMs: 9_000 });
    bed.merchant.next({ acts: true, says: 'lost' });
    await slow.begin();
    assert.equal(bed.merchant.heard.length, 2);
    bed.pass(TIMEOUT_MS);
    assert.match(said(await bed.gateway().run()), /^in_flight /);
    assert.deepEqual(slow.told, ['again']);
  });

  it('read for so long that another one took over: asks the store anew, and runs nothing', async () => {
    bed.merchant.next(unheard(false));
    await bed.gateway().run();
    const slow = bed.gateway({
      claims: {
        ...bed.claims,
        async claim(claim) {
          const claimed = await bed.claims.claim(claim);
          if (claimed.kind !== 'granted' || claimed.earlier === undefined) return claimed;
          // It stands still until its lease is over, and somebody else does the work.
          bed.pass(TIMEOUT_MS + 10_000);
          assert.match(said(await bed.gateway().run()), /^200 backend /);
          return claimed;
        },
      },
    });
    bed.merchant.nextReads({ says: 'unreadable' }, { says: 'unreadable' });
    assert.match(said(await slow.run()), /^200 kept /);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });
});

describe('for a merchant that looks at no key', () => {
  let bed: Bed;
  beforeEach(() => {
    bed = openBed();
  });
  afterEach(() => bed.close());

  it('nothing runs again within the settle window; what came late is found', async () => {
    const gateway = bed.gateway(READ_BACK_ONLY);
    bed.merchant.next(unheard(false));
    await gateway.run();
    for (const ms of [0, 10_000, 20_000, WINDOW_MS - 30_000]) {
      bed.pass(ms);
      assert.match(said(await gateway.run()), /^in_flight /);
    }
    assert.equal(bed.merchant.heard.length, 1);
    assert.equal(bed.merchant.reads(), 4);
    // What came late: now it is there.
    bed.merchant.next({ acts: true, says: 'answer' });
    await bed.merchant.work(COMPLETE).attempt({ backendKey: 'late', number: 1 });
    assert.match(said(await gateway.run()), /^200 session /);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  for (const why of ['status', 'invalid_document'] as const)
    it(`need not wait after an answer, ${why}: what is answered comes no later`, async () => {
      const gateway = bed.gateway(READ_BACK_ONLY);
      bed.merchant.next({ acts: false, says: { unknown: why } });
      await gateway.run();
      bed.merchant.nextReads({ says: 'unreadable' });
      assert.match(said(await gateway.run()), /^in_flight /);
      assert.match(said(await gateway.run()), /^200 backend /);
      assert.equal(bed.merchant.reads(), 2);
    });

  it('retries do not push the window ahead: after it the operation runs again, and has a window of its own', async () => {
    const gateway = bed.gateway(READ_BACK_ONLY);
    bed.merchant.next(unheard(false), unheard(false));
    await gateway.run();
    for (let ms = 0; ms <= WINDOW_MS; ms += 5_000) {
      bed.pass(5_000);
      if (ms + 5_000 <= WINDOW_MS) assert.match(said(await gateway.run()), /^in_flight /, `${ms}`);
    }
    assert.equal(said(await gateway.run()), 'failed: timeout');
    bed.pass(WINDOW_MS - 1);
    assert.match(said(await gateway.run()), /^in_flight /);
    bed.pass(2);
    assert.match(said(await gateway.run()), /^200 backend /);
    assert.equal(bed.merchant.heard.length, 3);
  });

  it('the window of an attempt that stood still before it called begins when it called', async () => {
    let stands = true;
    const claim: CheckoutClaims['claim'] = async (wanted) => {
      const claimed = await bed.claims.claim(wanted);
      if (stands) bed.pass(2 * WINDOW_MS);
      stands = false;
      return claimed;
    };
    bed.merchant.next(unheard(false));
    const gateway = bed.gateway({ ...READ_BACK_ONLY, claims: { ...bed.claims, claim } });
    assert.equal(said(await gateway.run()), 'failed: timeout');
    bed.pass(WINDOW_MS - 1_000);
    assert.match(said(await gateway.run()), /^in_flight /);
    assert.equal(bed.merchant.heard.length, 1);
  });

  it('the wait that is named does not go beyond the window', async () => {
    const gateway = bed.gateway(READ_BACK_ONLY);
    bed.merchant.next(unheard(false));
    await gateway.run();
    bed.pass(WINDOW_MS - 2_000);
    assert.equal(said(await gateway.run()), 'in_flight 2');
  });

  it('a refusal counts only once the session tells that the earlier attempt did not happen', async () => {
    const gateway = bed.gateway(READ_BACK_ONLY);
    bed.merchant.next(unheard(false), { acts: true, says: 'declined' });
    await gateway.run();
    bed.pass(WINDOW_MS + 1);
    bed.merchant.nextReads({}, { says: 'unreadable' });
    assert.match(said(await gateway.run()), /^in_flight /);
    assert.match(said(await gateway.run()), /^200 session /);
  });

  it('a session that cannot be read lets nothing run, after the window too', async () => {
    const gateway = bed.gateway(READ_BACK_ONLY);
    bed.merchant.next(unheard(false));
    await gateway.run();
    bed.pass(10 * WINDOW_MS);
    bed.merchant.nextReads({ says: 'unreadable' });
    assert.equal(said(await gateway.run()), 'in_flight 1');
    assert.match(said(await gateway.run()), /^200 backend /);
  });

  it('a merchant that is at it begins the window anew', async () => {
    const gateway = bed.gateway(READ_BACK_ONLY);
    bed.merchant.next(unheard(false));
    await gateway.run();
    bed.pass(WINDOW_MS - 1_000);
    bed.merchant.nextReads({ says: 'in_progress' });
    assert.match(said(await gateway.run()), /^in_flight /);
    bed.pass(WINDOW_MS - 1_000);
    assert.match(said(await gateway.run()), /^in_flight /);
    bed.pass(1_001);
    assert.match(said(await gateway.run()), /^200 backend /);
  });
});
