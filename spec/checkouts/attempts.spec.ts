import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settleWindowMs } from '../../src/checkouts/settings.ts';
import {
  bytesOf,
  CANCEL,
  COMPLETE,
  DECLINED,
  freshBed,
  LEASE_MS,
  LOST,
  NOT_EXECUTED,
  OTHER_KEY,
  REFUSED,
  type Step,
  story,
  TIMEOUT_MS,
  textOf,
  unknown,
} from './bed.ts';

const WINDOW_MS = settleWindowMs(TIMEOUT_MS);

/** acp 12.5, on the embedded store. */
describe('a call whose earlier attempt has an unknown end', () => {
  const bed = freshBed();

  for (const call of [COMPLETE, CANCEL])
    for (const why of ['timeout', 'reset', 'status', 'invalid_document'] as const)
      it(`${call.operation}, ${why}, happened: the session is the answer, and from then on the same bytes`, async () => {
        const gateway = bed.gateway();
        bed.backend.next(unknown(true, why));
        assert.equal(textOf(await gateway.run(call)), `failed: ${why}`);
        const found = await gateway.run(call);
        assert.equal(textOf(found), '200 session {"read":1}');
        const kept = await gateway.run(call);
        assert.match(textOf(kept), /^200 kept /);
        assert.deepEqual(bytesOf(kept), bytesOf(found));
        assert.equal(bed.backend.posts.length, 1);
        assert.deepEqual(gateway.reports, ['first', `unknown: ${why}`, 'again', 'done']);
      });

  it('did not happen: runs again with the same key of the backend', async () => {
    bed.backend.next(unknown(false));
    await bed.gateway().run();
    assert.match(textOf(await bed.gateway().run()), /^200 backend /);
    const [one, two] = bed.backend.posts;
    assert.equal(one?.backendKey, two?.backendKey);
    assert.equal(bed.backend.orders('cs_1'), 1);
  });

  const again: Step = ['failed: timeout'];
  story(
    bed,
    'is at work in the backend: stays unknown, and is answered once it is done',
    {
      turns: [unknown(true)],
      posts: 1,
      reports: ['first', 'unknown: timeout', 'again', 'unknown: in_progress', 'again'],
    },
    [again, ['in_flight 3', COMPLETE, { afterMs: 3_000, reads: ['in_progress'] }], ['200 session']],
  );
  story(bed, 'cannot be read: runs again where the backend goes by keys', { turns: [unknown(false)] }, [
    again,
    ['200 backend', COMPLETE, { reads: ['unreadable'] }],
  ]);
  story(
    bed,
    'cannot be read, and had another key: does not run, for the backend cannot know it by this one',
    { turns: [unknown(true)] },
    [again, ['session_busy 1', OTHER_KEY, { reads: ['unreadable'] }], ['200 session', OTHER_KEY]],
  );
  for (const ends of ['refusal', 'declined'] as const)
    story(
      bed,
      `runs again as the earlier one ends, ${ends}: the session is the answer, for the key was not refused`,
      { turns: [unknown(false), { acts: true, ends }], posts: 2 },
      [again, ['200 session'], ['200 kept']],
    );
  for (const operation of ['completeCheckoutSession', 'updateCheckoutSession'] as const) {
    const call = { ...COMPLETE, operation };
    story(
      bed,
      `runs again while the backend still works on it, and is refused for that: not kept, ${operation}`,
      { turns: [unknown(false), REFUSED], orders: operation === 'completeCheckoutSession' ? 1 : 0 },
      [
        ['failed: timeout', call],
        ['409 backend', call],
        ['200 backend', call],
        ['200 kept', call],
      ],
    );
  }
  story(
    bed,
    'runs again, is refused, and the session is at work: stays unknown',
    { turns: [unknown(false), { acts: true, ends: 'declined' }] },
    [again, ['in_flight', COMPLETE, { reads: [undefined, 'in_progress'] }], ['200 session']],
  );
  story(bed, 'runs again and is declined: that is kept', { turns: [unknown(false), DECLINED], orders: 0 }, [
    again,
    ['422 backend'],
    ['422 kept'],
  ]);
  story(
    bed,
    'can be read neither before it runs again nor after it is declined: that is kept, the backend goes by keys',
    { turns: [unknown(false), DECLINED], orders: 0 },
    [again, ['422 backend', COMPLETE, { reads: ['unreadable', 'unreadable'] }], ['422 kept']],
  );

  it('read for longer than the lease allows: the lease is renewed before the backend is called', async () => {
    bed.backend.next(unknown(false));
    await bed.gateway().run();
    const slow = bed.gateway();
    bed.backend.nextReads({ tookMs: 9_000 });
    bed.backend.next(LOST);
    await slow.begin();
    assert.equal(bed.backend.posts.length, 2);
    bed.pass(TIMEOUT_MS);
    assert.match(textOf(await bed.gateway().run()), /^in_flight /);
    assert.deepEqual(slow.reports, ['again']);
  });

  it('read for so long that another one took over: asks the store again, and runs nothing', async () => {
    bed.backend.next(unknown(false));
    await bed.gateway().run();
    const slow = bed.gateway({
      claims: {
        async claim(claim) {
          const claimed = await bed.claims.claim(claim);
          if (claimed.kind !== 'granted' || claimed.earlier === undefined) return claimed;
          // It stands still until its lease is over, and another gateway does the work.
          bed.pass(TIMEOUT_MS + 10_000);
          assert.match(textOf(await bed.gateway().run()), /^200 backend /);
          return claimed;
        },
      },
    });
    bed.backend.nextReads({ shows: 'unreadable' }, { shows: 'unreadable' });
    assert.match(textOf(await slow.run()), /^200 kept /);
    assert.equal(bed.backend.orders('cs_1'), 1);
  });
});

describe('for a backend that ignores keys', () => {
  const bed = freshBed();
  const settings = { merchant: 'read-back-only' } as const;
  const again: Step = ['failed: timeout'];

  it('nothing runs again within the settle window; what came late is found', async () => {
    const gateway = bed.gateway({ settings });
    bed.backend.next(unknown(false));
    await gateway.run();
    for (const ms of [0, 10_000, 20_000, WINDOW_MS - 30_000]) {
      bed.pass(ms);
      assert.match(textOf(await gateway.run()), /^in_flight /);
    }
    assert.deepEqual([bed.backend.posts.length, bed.backend.reads()], [1, 4]);
    await bed.backend.work(COMPLETE).attempt({ backendKey: 'late', number: 1 });
    assert.match(textOf(await gateway.run()), /^200 session /);
    assert.equal(bed.backend.orders('cs_1'), 1);
  });

  for (const why of ['status', 'invalid_document'] as const)
    story(
      bed,
      `need not wait after an answer, ${why}: an answer has no late effect`,
      { settings, turns: [unknown(false, why)], reads: 2 },
      [[`failed: ${why}`], ['in_flight', COMPLETE, { reads: ['unreadable'] }], ['200 backend']],
    );

  it('retries do not delay the end of the window: after it the operation runs again, and has a window of its own', async () => {
    const gateway = bed.gateway({ settings });
    bed.backend.next(unknown(false), unknown(false));
    await gateway.run();
    for (let ms = 0; ms <= WINDOW_MS; ms += 5_000) {
      bed.pass(5_000);
      if (ms + 5_000 <= WINDOW_MS) assert.match(textOf(await gateway.run()), /^in_flight /, `${ms}`);
    }
    assert.equal(textOf(await gateway.run()), 'failed: timeout');
    bed.pass(WINDOW_MS - 1);
    assert.match(textOf(await gateway.run()), /^in_flight /);
    bed.pass(2);
    assert.match(textOf(await gateway.run()), /^200 backend /);
    assert.equal(bed.backend.posts.length, 3);
  });

  it('the window of an attempt that stood still before its call begins with that call', async () => {
    let stands = true;
    const gateway = bed.gateway({
      settings,
      claims: {
        async claim(wanted) {
          const claimed = await bed.claims.claim(wanted);
          if (stands) bed.pass(2 * WINDOW_MS);
          stands = false;
          return claimed;
        },
      },
    });
    bed.backend.next(unknown(false));
    assert.equal(textOf(await gateway.run()), 'failed: timeout');
    bed.pass(WINDOW_MS - 1_000);
    assert.match(textOf(await gateway.run()), /^in_flight /);
    assert.equal(bed.backend.posts.length, 1);
  });

  story(bed, 'the wait does not go beyond the window', { settings, turns: [unknown(false)], orders: 0 }, [
    again,
    ['in_flight 2', COMPLETE, { afterMs: WINDOW_MS - 2_000 }],
  ]);
  story(
    bed,
    'a refusal counts only once the session shows that the earlier attempt did not happen',
    { settings, turns: [unknown(false), { acts: true, ends: 'declined' }] },
    [again, ['in_flight', COMPLETE, { afterMs: WINDOW_MS + 1, reads: [undefined, 'unreadable'] }], ['200 session']],
  );
  story(
    bed,
    'a session that cannot be read lets nothing run, after the window too',
    { settings, turns: [unknown(false)] },
    [again, ['in_flight 1', COMPLETE, { afterMs: 10 * WINDOW_MS, reads: ['unreadable'] }], ['200 backend']],
  );
  story(bed, 'a backend that works on it begins the window anew', { settings, turns: [unknown(false)] }, [
    again,
    ['in_flight', COMPLETE, { afterMs: WINDOW_MS - 1_000, reads: ['in_progress'] }],
    ['in_flight', COMPLETE, { afterMs: WINDOW_MS - 1_000 }],
    ['200 backend', COMPLETE, { afterMs: 1_001 }],
  ]);
});

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
