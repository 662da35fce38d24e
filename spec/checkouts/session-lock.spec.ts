import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settleWindowMs } from '../../src/checkouts/leases.ts';
import {
  CANCEL,
  COMPLETE,
  freshBed,
  LEASE_MS,
  LOST,
  NOT_EXECUTED,
  OTHER_KEY,
  REFUSED,
  story,
  TIMEOUT_MS,
  textOf,
  unknown,
} from './bed.ts';

const OTHER_CLIENT = { ...COMPLETE, clientId: 'another', body: { payment_data: { token: 'other' } } };
/** From the end of a timeout to the end of the settle window, milliseconds. */
const REST_OF_WINDOW_MS = settleWindowMs(TIMEOUT_MS) - TIMEOUT_MS;

/** acp 12.7, on the embedded store. */
describe('complete and cancel of one session', () => {
  const bed = freshBed();

  for (const [name, call] of [
    ['another key', OTHER_KEY],
    ['another client', OTHER_CLIENT],
    ['the other operation', CANCEL],
  ] as const)
    it(`exclude one another: ${name} has to wait while one runs`, async () => {
      bed.backend.next(LOST);
      await bed.gateway().begin();
      bed.pass(2_000);
      const gateway = bed.gateway();
      assert.equal(textOf(await gateway.run(call)), 'session_busy 2');
      assert.deepEqual(gateway.reports, ['session_busy']);
      assert.equal(bed.backend.posts.length, 1);
    });

  it('do not concern another session, nor updates of this one', async () => {
    bed.backend.next(LOST);
    await bed.gateway().begin();
    for (const other of [{ sessionId: 'cs_2' }, { operation: 'updateCheckoutSession' as const }])
      assert.match(textOf(await bed.gateway().run({ ...COMPLETE, ...other })), /^200 backend /);
  });

  it('do not exclude one another without the lock', async () => {
    const gateway = bed.gateway({ settings: { sessionLock: false } });
    bed.backend.next({ acts: false, ends: 'lost' });
    await gateway.begin();
    assert.match(textOf(await gateway.run(OTHER_KEY)), /^200 backend /);
  });

  it('a new key after a gateway died finds its order, once the lease is over', async () => {
    bed.backend.next(LOST);
    await bed.gateway().begin();
    bed.pass(LEASE_MS);
    const gateway = bed.gateway();
    assert.match(textOf(await gateway.run(OTHER_KEY)), /^200 session /);
    assert.deepEqual(gateway.reports, ['again', 'lease expired']);
    assert.equal(bed.backend.orders('cs_1'), 1);
  });

  story(bed, 'a new key after an unknown end finds the order that the old one made', { turns: [unknown(true)] }, [
    ['failed: timeout'],
    ['200 session', OTHER_KEY],
    ['200 session'],
  ]);
  story(
    bed,
    'a new key after a timeout waits for a late effect: the backend cannot know it by this key',
    { turns: [unknown(false, 'timeout', TIMEOUT_MS)], posts: 2 },
    [
      ['failed: timeout'],
      ['session_busy', OTHER_KEY],
      ['session_busy', OTHER_KEY, { afterMs: 10_000 }],
      ['session_busy', OTHER_KEY, { afterMs: REST_OF_WINDOW_MS - 10_000 }],
      ['200 backend', OTHER_KEY, { afterMs: 1 }],
    ],
  );
  story(bed, 'a new key need not wait where the backend failed by itself', { turns: [unknown(false, 'status')] }, [
    ['failed: status'],
    ['200 backend', OTHER_KEY],
  ]);
  story(bed, 'a cancel need not wait after a timeout', { turns: [unknown(false)], orders: 0 }, [
    ['failed: timeout'],
    ['200 backend', CANCEL],
  ]);
  story(
    bed,
    'a new key after an attempt that certainly did not happen runs at once',
    { turns: [NOT_EXECUTED], reads: 0 },
    [['unreachable'], ['200 backend', OTHER_KEY]],
  );
  story(bed, 'a refused cancel does not hide a complete that may have happened', { turns: [unknown(true), REFUSED] }, [
    ['failed: timeout'],
    ['409 backend', CANCEL],
    ['200 session', OTHER_KEY],
  ]);
  story(
    bed,
    'an attempt that has only read leaves the end to the key that it belongs to',
    { turns: [unknown(false, 'status')] },
    [
      ['failed: status'],
      ['session_busy', OTHER_KEY, { reads: ['in_progress'] }],
      ['in_flight', COMPLETE, { reads: ['in_progress'] }],
      ['200 backend', COMPLETE, { reads: ['unreadable'] }],
    ],
  );
  story(
    bed,
    'an unknown end of another key: the answer names the session, not the key',
    { turns: [unknown(false)], orders: 0 },
    [['failed: timeout'], ['session_busy 1', OTHER_KEY, { reads: ['in_progress'] }]],
  );
  story(
    bed,
    'a session that cannot be read: another request runs only as long as it may',
    { turns: [unknown(false, 'timeout', TIMEOUT_MS)] },
    [
      ['failed: timeout'],
      ['session_busy', OTHER_KEY, { reads: ['unreadable'] }],
      ['session_busy', OTHER_KEY, { afterMs: REST_OF_WINDOW_MS, reads: ['unreadable'] }],
      ['session_unknown', OTHER_KEY, { afterMs: 1, reads: ['unreadable'] }],
      ['session_unknown', OTHER_KEY, { afterMs: 60_000, reads: ['unreadable'] }],
      ['session_busy', OTHER_KEY, { reads: ['in_progress'] }],
      ['200 backend', OTHER_KEY],
    ],
  );
  for (const why of ['status', 'invalid_document'] as const)
    story(
      bed,
      `a session that cannot be read after an answer, ${why}: none runs, for the attempt is over`,
      { turns: [unknown(false, why)] },
      [[`failed: ${why}`], ['session_unknown', OTHER_KEY, { reads: ['unreadable'] }], ['200 backend', OTHER_KEY]],
    );
  story(bed, 'take turns: the one that waited runs after a known end', { turns: [REFUSED], reads: 0 }, [
    ['409 backend', CANCEL],
    ['200 backend'],
  ]);
});
