import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KeyedCall } from '../../src/checkouts/attempts.ts';
import type { CheckoutClaims } from '../../src/checkouts/claim-table.ts';
import { away, DAY_MS, freshBed, OTHER_SECRET, textOf } from './bed.ts';

const CREATE: KeyedCall = {
  clientId: 'mine',
  operation: 'createCheckoutSession',
  sessionId: undefined,
  key: 'k',
  body: {},
};
const THEIRS: KeyedCall = { ...CREATE, clientId: 'theirs' };

describe('a session that a client opens', () => {
  const bed = freshBed();

  /** A store that is away for the first so many writes of an owner. */
  const awayFor = (times: number): Partial<CheckoutClaims> => {
    let asked = 0;
    return {
      own(owning) {
        asked += 1;
        return asked > times ? bed.claims.own(owning) : away();
      },
    };
  };

  it('is its own, and does not exist for others', async () => {
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

  it('without a known owner may be asked of a backend that decides, or has one client', async () => {
    const gateway = bed.gateway({ servesUnknown: true });
    assert.equal(await gateway.access('mine', 'unknown'), 'granted');
    await gateway.run(CREATE);
    assert.equal(await gateway.access('theirs', 'new_1'), 'absent: other', 'a known owner counts all the same');
  });

  it('has another name under another secret', async () => {
    await bed.gateway().run(CREATE);
    const changed = bed.gateway({ settings: OTHER_SECRET });
    assert.equal(await changed.access('mine', 'new_1'), 'absent: none');
  });

  it('is its own although the first reply of the store was lost', async () => {
    const gateway = bed.gateway({ claims: awayFor(1) });
    assert.match(textOf(await gateway.run(CREATE)), /^200 backend /);
    assert.equal(await gateway.access('mine', 'new_1'), 'granted');
  });

  it('is not sent while the store cannot record its owner: the repeated call opens one', async () => {
    const gateway = bed.gateway({ claims: awayFor(2) });
    assert.equal(textOf(await gateway.run(CREATE)), 'unavailable');
    assert.deepEqual(gateway.reports, ['first', 'unknown: unowned']);
    bed.backend.next({ acts: true, ends: 'answer', opens: 'new_1' });
    assert.match(textOf(await gateway.run(CREATE)), /^200 backend /);
    assert.equal(new Set(bed.backend.posts.map(({ backendKey }) => backendKey)).size, 1, 'by the same key');
    assert.equal(await gateway.access('mine', 'new_1'), 'granted');
  });

  it('is sent all the same where nothing depends on its owner', async () => {
    const gateway = bed.gateway({ claims: awayFor(2), servesUnknown: true });
    assert.match(textOf(await gateway.run(CREATE)), /^200 backend /);
    assert.equal(await gateway.access('mine', 'new_1'), 'granted');
  });

  it('is not sent when it is another client’s already, and is not kept as an answer', async () => {
    const gateway = bed.gateway();
    await gateway.run(CREATE);
    bed.backend.next({ acts: true, ends: 'answer', opens: 'new_1' });
    assert.equal(textOf(await gateway.run(THEIRS)), 'foreign');
    assert.deepEqual(gateway.reports.slice(-2), ['unknown: unowned', 'foreign']);
    assert.equal(await gateway.access('mine', 'new_1'), 'granted');
    assert.match(textOf(await gateway.run(THEIRS)), /^200 backend /);
    assert.equal(await gateway.access('theirs', 'new_3'), 'granted');
  });

  it('cannot be looked up while the store is away: its owner is not guessed, unless it makes no difference', async () => {
    const claims = { ownership: away };
    assert.equal(await bed.gateway({ claims }).access('mine', 'new_1'), 'unavailable');
    const alone = bed.gateway({ claims, servesUnknown: true });
    assert.equal(await alone.access('mine', 'new_1'), 'granted');
  });
});
