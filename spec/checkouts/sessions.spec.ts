import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { CheckoutClaims } from '../../src/checkouts/claims.ts';
import type { KeyedCall } from '../../src/checkouts/idempotency.ts';
import { StoreError } from '../../src/store/port/store.ts';
import { type Bed, openBed, said } from './bed.ts';

const CREATE: KeyedCall = {
  clientId: 'mine',
  operation: 'createCheckoutSession',
  sessionId: undefined,
  key: 'k',
  body: {},
};
const THEIRS: KeyedCall = { ...CREATE, clientId: 'theirs' };
const DAY_MS = 86_400_000;
const away = (): Promise<never> => Promise.reject(new StoreError(new Error('connection lost')));

describe('a session that a client opens', () => {
  let bed: Bed;
  beforeEach(() => {
    bed = openBed();
  });
  afterEach(() => bed.close());

  /** A store that is away for the first so many times that a session is made somebody's. */
  const awayFor = (times: number): CheckoutClaims => {
    let asked = 0;
    return {
      ...bed.claims,
      own(owning) {
        asked += 1;
        return asked > times ? bed.claims.own(owning) : away();
      },
    };
  };

  it('is its own, and there is none for the others', async () => {
    const gateway = bed.gateway();
    assert.equal(await gateway.access('mine', 'new_1'), 'absent: none');
    await gateway.run(CREATE);
    assert.equal(await gateway.access('mine', 'new_1'), 'granted');
    assert.equal(await gateway.access('theirs', 'new_1'), 'absent: other');
  });

  it('stays its own as long as it is used, and for longer than anything of its calls is kept', async () => {
    const gateway = bed.gateway();
    await gateway.run(CREATE);
    for (let day = 0; day < 100; day += 25) {
      bed.pass(25 * DAY_MS);
      assert.equal(await gateway.access('mine', 'new_1'), 'granted', `day ${day}`);
      assert.equal(await gateway.access('theirs', 'new_1'), 'absent: other', `day ${day}`);
    }
    bed.pass(40 * DAY_MS);
    assert.equal(await gateway.access('mine', 'new_1'), 'absent: none');
  });

  it('is its own for all its days after each use, whenever that is', async () => {
    const gateway = bed.gateway();
    await gateway.run(CREATE);
    for (const day of [1, 18, 30]) {
      bed.pass(day * DAY_MS);
      assert.equal(await gateway.access('mine', 'new_1'), 'granted');
      bed.pass(36 * DAY_MS);
      assert.equal(await gateway.access('mine', 'new_1'), 'granted', `36 days after a use on day ${day}`);
    }
  });

  it('that is not known to be anybody’s may be asked of a merchant that decides, or has one client', async () => {
    const gateway = bed.gateway({ servesUnknown: true });
    assert.equal(await gateway.access('mine', 'unknown'), 'granted');
    await gateway.run(CREATE);
    assert.equal(await gateway.access('theirs', 'new_1'), 'absent: other', 'what is known counts all the same');
  });

  it('is another shop’s affair where the secret is another', async () => {
    await bed.gateway().run(CREATE);
    const changed = bed.gateway({ settings: { secret: Buffer.from('another secret of a test, long enough') } });
    assert.equal(await changed.access('mine', 'new_1'), 'absent: none');
  });

  it('is its own although the first reply of the store was lost', async () => {
    const gateway = bed.gateway({ claims: awayFor(1) });
    assert.match(said(await gateway.run(CREATE)), /^200 backend /);
    assert.equal(await gateway.access('mine', 'new_1'), 'granted');
  });

  it('is not told of while the store does not say whose it is: the same call comes again, and opens one', async () => {
    const gateway = bed.gateway({ claims: awayFor(2) });
    assert.equal(said(await gateway.run(CREATE)), 'unavailable');
    assert.deepEqual(gateway.told, ['first', 'unknown: unowned']);
    bed.merchant.next({ acts: true, says: 'answer', opens: 'new_1' });
    assert.match(said(await gateway.run(CREATE)), /^200 backend /);
    assert.equal(new Set(bed.merchant.heard.map(({ backendKey }) => backendKey)).size, 1, 'by the same key');
    assert.equal(await gateway.access('mine', 'new_1'), 'granted');
  });

  it('is told of all the same where nothing depends on it', async () => {
    const gateway = bed.gateway({ claims: awayFor(2), servesUnknown: true });
    assert.match(said(await gateway.run(CREATE)), /^200 backend /);
    assert.equal(await gateway.access('mine', 'new_1'), 'granted');
  });

  it('is not told of when it is another client’s already, and is not kept as an answer', async () => {
    const gateway = bed.gateway();
    await gateway.run(CREATE);
    bed.merchant.next({ acts: true, says: 'answer', opens: 'new_1' });
    assert.equal(said(await gateway.run(THEIRS)), 'foreign');
    assert.deepEqual(gateway.told.slice(-2), ['unknown: unowned', 'foreign']);
    assert.equal(await gateway.access('mine', 'new_1'), 'granted');
    assert.match(said(await gateway.run(THEIRS)), /^200 backend /);
    assert.equal(await gateway.access('theirs', 'new_3'), 'granted');
  });

  it('cannot be looked up while the store is away: nothing is guessed, unless it makes no difference', async () => {
    const ownership = away;
    assert.equal(await bed.gateway({ claims: { ...bed.claims, ownership } }).access('mine', 'new_1'), 'unavailable');
    const alone = bed.gateway({ claims: { ...bed.claims, ownership }, servesUnknown: true });
    assert.equal(await alone.access('mine', 'new_1'), 'granted');
  });
});
