import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CHECKOUT_CHANNEL } from '../../src/checkouts/attempts.ts';
import type { CheckoutClaims } from '../../src/checkouts/claim-table.ts';
import { retryAfterS } from '../../src/checkouts/settings.ts';
import type { SealingKey } from '../../src/crypto/seal.ts';
import {
  away,
  bytesOf,
  COMPLETE,
  DAY_MS,
  freshBed,
  LEASE_MS,
  LOST,
  NOT_EXECUTED,
  OTHER_KEY,
  REFUSED,
  SETTINGS,
  story,
  TIMEOUT_MS,
  textOf,
  unknown,
} from './bed.ts';

const OTHER_BODY = { ...COMPLETE, body: { payment_data: { token: 'other' } } };

/** acp 12.4, on the embedded store. */
describe('a keyed call', () => {
  const bed = freshBed();

  it('runs once, and every repetition gets the same bytes', async () => {
    const gateway = bed.gateway();
    const first = await gateway.run();
    assert.equal(textOf(first), '200 backend {"by":"completeCheckoutSession","post":1}');
    for (const _again of [1, 2, 3]) {
      bed.pass(60_000);
      const kept = await gateway.run();
      assert.match(textOf(kept), /^200 kept /);
      assert.deepEqual(bytesOf(kept), bytesOf(first));
    }
    assert.equal(bed.backend.posts.length, 1);
    assert.deepEqual(gateway.reports, ['first', 'done', 'done', 'done']);
  });

  it('is kept for at least the retention, on another gateway too; afterwards the key is a new one', async () => {
    for (const [afterMs, end] of [
      [0, /^200 backend /],
      [SETTINGS.retentionMs - 1, /^200 kept /],
      [2, /^200 backend /],
    ] as const) {
      bed.pass(afterMs);
      assert.match(textOf(await bed.gateway().run()), end);
    }
  });

  story(bed, 'with another body is a conflict, whatever the first came to', { turns: [unknown(false)], posts: 2 }, [
    ['failed: timeout'],
    ['conflict', OTHER_BODY],
    ['200 backend'],
    ['conflict', OTHER_BODY],
  ]);
  story(bed, 'keeps a refusal below 500 like any other answer', { turns: [REFUSED], posts: 1, orders: 0 }, [
    ['409 backend {"refused":1}'],
    ['409 kept {"refused":1}'],
  ]);
  story(
    bed,
    'that certainly did not happen leaves nothing: the key is free, also for another body',
    { turns: [NOT_EXECUTED], reports: ['first', 'first'] },
    [['unreachable'], ['200 backend', { ...COMPLETE, body: {} }]],
  );
  story(
    bed,
    'that did not happen after one that may have still counts as unknown',
    { turns: [unknown(false, 'reset'), NOT_EXECUTED], reports: ['first', 'unknown: reset', 'again', 'again'] },
    [['failed: reset'], ['unreachable'], ['200 backend']],
  );

  it('that runs is in flight for all others: a longer wait the longer it runs, but not beyond its lease', async () => {
    bed.backend.next(LOST);
    await bed.gateway().begin();
    const waits: string[] = [];
    for (const ms of [0, 4_500, 10_000, 13_000]) {
      bed.pass(ms);
      waits.push(textOf(await bed.gateway().run()));
    }
    assert.deepEqual(waits, ['in_flight 1', 'in_flight 5', 'in_flight 14', 'in_flight 1']);
    assert.equal(bed.backend.posts.length, 1);
  });

  it('sends the backend one key over all attempts and gateways, and counts the attempts', async () => {
    bed.backend.next(unknown(false, 'status'), unknown(false));
    for (const _attempt of [1, 2, 3]) await bed.gateway().run();
    const [{ backendKey } = assert.fail()] = bed.backend.posts;
    const { operation } = COMPLETE;
    assert.deepEqual(
      bed.backend.posts,
      [1, 2, 3].map((number) => ({ operation, backendKey, number })),
    );
  });

  for (const [operation, sessionId] of [
    ['createCheckoutSession', undefined],
    ['updateCheckoutSession', 'cs_1'],
  ] as const) {
    const call = { ...COMPLETE, operation, sessionId };
    story(
      bed,
      `${operation} runs again after an unknown end, without a read of the session`,
      {
        settings: { merchant: 'read-back-only' },
        turns: [unknown(true, 'invalid_document')],
        reads: 0,
        orders: 0,
      },
      [
        ['failed: invalid_document', call],
        ['200 backend', call],
      ],
    );
  }

  const shortly = { settings: { retentionMs: DAY_MS } };
  story(
    bed,
    'whose end is unknown is remembered for seven days, however short answers are kept',
    { ...shortly, turns: [unknown(true)] },
    [['failed: timeout'], ['200 session', COMPLETE, { afterMs: 7 * DAY_MS - 1_000 }]],
  );

  it('of a gateway that died is remembered as long', async () => {
    bed.backend.next(LOST);
    await bed.gateway(shortly).begin();
    bed.pass(7 * DAY_MS + TIMEOUT_MS);
    assert.match(textOf(await bed.gateway(shortly).run()), /^200 session /);
    assert.equal(bed.backend.orders('cs_1'), 1);
  });
});

describe('a change of the keys that answers are sealed with', () => {
  const OLD: SealingKey = { id: 'old', key: Buffer.alloc(32, 1) };
  const NEW: SealingKey = { id: 'new', key: Buffer.alloc(32, 2) };
  const bed = freshBed();
  const gateway = (...keys: [SealingKey, ...SealingKey[]]) => bed.gateway({ settings: { keys } });

  it('leaves every kept answer as it is, in both directions, while the ring has both', async () => {
    const first = await gateway(OLD).run();
    const later = { ...COMPLETE, key: 'key-2', sessionId: 'cs_2' };
    const second = await gateway(NEW, OLD).run(later);
    assert.deepEqual(bytesOf(await gateway(NEW, OLD).run()), bytesOf(first));
    assert.deepEqual(bytesOf(await gateway(OLD, NEW).run(later)), bytesOf(second));
    assert.equal(bed.backend.posts.length, 2);
  });

  it('that removes the old one too early: the call has an unknown end, and is read back', async () => {
    await gateway(OLD).run();
    const changed = gateway(NEW);
    const found = await changed.run();
    assert.match(textOf(found), /^200 session /);
    assert.deepEqual(changed.reports, ['done', 'unopened', 'again']);
    assert.deepEqual(bytesOf(await changed.run()), bytesOf(found));
    assert.equal(bed.backend.orders('cs_1'), 1);
  });

  it('never makes a second call before it reads the session, even for a backend that honours keys', async () => {
    await gateway(OLD).run();
    bed.backend.nextReads({ shows: 'unreadable' });
    assert.match(textOf(await gateway(NEW).run()), /^in_flight /);
    assert.equal(bed.backend.posts.length, 1);
    assert.match(textOf(await gateway(NEW).run()), /^200 session /);
  });

  it('lets a refusal that no key opens run again', async () => {
    bed.backend.next(REFUSED);
    await gateway(OLD).run();
    assert.match(textOf(await gateway(NEW).run()), /^200 backend /);
    assert.equal(bed.backend.orders('cs_1'), 1);
  });

  it('an answer that is sealed each time with a key that is gone ends as unavailable', async () => {
    await gateway(OLD).run();
    const claim = async () => ({ kind: 'completed', status: 200, sealed: randomUUID() }) as const;
    assert.equal(textOf(await bed.gateway({ claims: { claim } }).run()), 'unavailable');
    assert.equal(bed.backend.posts.length, 1);
  });
});

describe('the steps of a call', () => {
  const bed = freshBed();
  const steps: unknown[] = [];
  const listen = (message: unknown): void => void steps.push(message);
  beforeEach(() => {
    steps.length = 0;
    subscribe(CHECKOUT_CHANNEL, listen);
  });
  afterEach(() => void unsubscribe(CHECKOUT_CHANNEL, listen));

  it('are published in order, with the operation and nothing else', async () => {
    bed.backend.next(unknown(false));
    await bed.gateway().run();
    await bed.gateway().run();
    const { operation } = COMPLETE;
    const first = ['before_claim', 'after_claim', 'before_send', 'after_merchant'];
    const again = ['before_claim', 'after_claim', 'after_read', 'before_send', 'after_merchant', 'after_finish'];
    assert.deepEqual(
      steps,
      [...first, ...again].map((step) => ({ step, operation })),
    );
  });
});

const never = <T>(): Promise<T> => new Promise(() => undefined);

/** The part of acp 12.9 that one process can show; the backend ignores keys. */
describe('a gateway that dies', () => {
  const bed = freshBed();
  const claimed: Partial<CheckoutClaims> = { claim: (claim) => bed.claims.claim(claim).then(never<never>) };

  for (const [at, ordered, turns, claims] of [
    ['after the claim', false, [], claimed],
    ['before the request is sent', false, [{ ...LOST, acts: false }], {}],
    ['while the backend works', true, [LOST], {}],
    ['after the answer of the backend', true, [], { finish: never }],
  ] as const)
    it(`${at}: in flight until the lease ends, then ${ordered ? 'found in the session' : 'run once'}; one order`, async () => {
      bed.backend.next(...turns);
      await bed.gateway({ claims }).begin();
      const gateway = bed.gateway();
      assert.equal(textOf(await gateway.run()), 'in_flight 1');
      bed.pass(LEASE_MS - 1);
      assert.equal(textOf(await gateway.run()), 'in_flight 1');
      bed.pass(1);
      const end = await gateway.run();
      assert.match(textOf(end), ordered ? /^200 session / : /^200 backend /);
      assert.deepEqual(bytesOf(await gateway.run()), bytesOf(end));
      assert.equal(bed.backend.orders('cs_1'), 1);
      assert.deepEqual(gateway.reports, ['in_flight', 'in_flight', 'again', 'lease expired', 'done']);
    });

  it('while it reads the session back: the next one reads again', async () => {
    bed.backend.next(unknown(true, 'reset'));
    await bed.gateway().run();
    await bed.gateway({ claims: { finish: never } }).begin();
    bed.pass(LEASE_MS);
    assert.match(textOf(await bed.gateway().run()), /^200 session /);
    assert.equal(bed.backend.orders('cs_1'), 1);
  });

  it('only for a while, after the backend has answered: the answer of the one that took over counts', async () => {
    const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
    const finish: CheckoutClaims['finish'] = (...end) => woken.then(() => bed.claims.finish(...end));
    const stopped = bed.gateway({ claims: { finish } });
    const stoppedEnd = stopped.run();
    while (bed.backend.posts.length === 0) await new Promise(setImmediate);
    assert.equal(textOf(await bed.gateway().run()), 'in_flight 1');
    bed.pass(LEASE_MS);
    const found = await bed.gateway().run();
    assert.match(textOf(found), /^200 session /);
    wake();
    assert.equal(textOf(await stoppedEnd), 'in_flight 1');
    assert.deepEqual(stopped.reports, ['first', 'fenced']);
    assert.deepEqual(bytesOf(await stopped.run()), bytesOf(found));
    assert.equal(bed.backend.orders('cs_1'), 1);
  });
});

/** The ends of attempts are lost. */
const NO_ENDS: Partial<CheckoutClaims> = { finish: away, unknown: away, release: away };

/** acp 12.8: what a store that is away changes. */
describe('a store that is away', () => {
  const bed = freshBed();
  /** Claims take so long, all of them or the first one. */
  const slowClaims = (ms: number, most = Number.POSITIVE_INFINITY): Partial<CheckoutClaims> => {
    let claims = 0;
    return {
      async claim(wanted) {
        const claimed = await bed.claims.claim(wanted);
        claims += 1;
        if (claims <= most) bed.pass(ms);
        return claimed;
      },
    };
  };

  it('at the claim: the backend is not called', async () => {
    const gateway = bed.gateway({ claims: { claim: away } });
    assert.equal(textOf(await gateway.run()), 'unavailable');
    assert.equal(bed.backend.posts.length, 0);
    assert.deepEqual(gateway.reports, ['unavailable']);
  });

  it('for the reply to a claim only: the claim is sent once more, and is recognised', async () => {
    const owners: string[] = [];
    const claim: CheckoutClaims['claim'] = async (wanted) => {
      owners.push(wanted.owner);
      const claimed = await bed.claims.claim(wanted);
      return owners.length === 1 ? away() : claimed;
    };
    const gateway = bed.gateway({ claims: { claim } });
    assert.match(textOf(await gateway.run()), /^200 backend /);
    assert.equal(new Set(owners).size, 1);
    assert.equal(owners.length, 2);
    assert.deepEqual(gateway.reports, ['first']);
  });

  it('for as long as a command may take: the claim is not repeated', async () => {
    let sent = 0;
    const claim = async (): Promise<never> => {
      sent += 1;
      bed.pass(500);
      return away();
    };
    assert.equal(textOf(await bed.gateway({ claims: { claim } }).run()), 'unavailable');
    assert.equal(sent, 1);
  });

  it('for a moment at the end: the answer is kept at the third try, within about a second', async () => {
    let tries = 0;
    const finish: CheckoutClaims['finish'] = (...end) => {
      tries += 1;
      return tries < 3 ? away() : bed.claims.finish(...end);
    };
    const gateway = bed.gateway({ claims: { finish } });
    const began = bed.now();
    assert.match(textOf(await gateway.run()), /^200 backend /);
    assert.ok(bed.now() - began <= 1_500, `${bed.now() - began} ms`);
    assert.match(textOf(await bed.gateway().run()), /^200 kept /);
    assert.deepEqual(gateway.reports, ['first']);
  });

  it("at the end: the backend's answer is sent all the same, and a retry finds the order in the session", async () => {
    const gateway = bed.gateway({ claims: NO_ENDS });
    assert.match(textOf(await gateway.run()), /^200 backend /);
    assert.deepEqual(gateway.reports, ['first', 'unstored']);
    assert.match(textOf(await bed.gateway().run()), /^in_flight /);
    bed.pass(LEASE_MS);
    assert.match(textOf(await bed.gateway().run()), /^200 session /);
    assert.equal(bed.backend.orders('cs_1'), 1);
  });

  it('at an unknown end or one that did not happen: counted, and the lease ends by itself', async () => {
    const gateway = bed.gateway({ claims: NO_ENDS });
    bed.backend.next(unknown(false, 'reset'), NOT_EXECUTED);
    assert.equal(textOf(await gateway.run()), 'failed: reset');
    bed.pass(LEASE_MS);
    assert.equal(textOf(await gateway.run()), 'unreachable');
    const [first, second] = [
      ['first', 'unknown: reset', 'unstored'],
      ['again', 'lease expired', 'unstored'],
    ];
    assert.deepEqual(gateway.reports, [first, second].flat());
    bed.pass(LEASE_MS);
    assert.match(textOf(await bed.gateway().run()), /^200 backend /);
  });

  it('so slow that the lease is nearly over: the lease is renewed before the backend is called', async () => {
    bed.backend.next(LOST);
    const gateway = bed.gateway({ claims: slowClaims(LEASE_MS - TIMEOUT_MS, 1) });
    await gateway.begin();
    assert.equal(bed.backend.posts.length, 1);
    bed.pass(TIMEOUT_MS);
    assert.match(textOf(await bed.gateway().run()), /^in_flight /);
    assert.deepEqual(gateway.reports, ['first']);
  });

  it('slow every time: the backend is not called, and the key is free at once', async () => {
    assert.equal(textOf(await bed.gateway({ claims: slowClaims(LEASE_MS - TIMEOUT_MS) }).run()), 'unavailable');
    assert.equal(bed.backend.posts.length, 0);
    assert.match(textOf(await bed.gateway().run()), /^200 backend /);
  });
});

describe('a store that loses its data during a call', () => {
  const bed = freshBed();
  const empty = freshBed();
  /** Claims on a store, and ends on another one without anything in it. */
  const emptied = () => {
    const { finish, unknown, release, own, ownership } = empty.claims;
    return bed.gateway({ claims: { finish, unknown, release, own, ownership } });
  };
  const afterwards = () => bed.gateway({ claims: empty.claims });

  it("gives the backend's answer, and keeps it", async () => {
    const gateway = emptied();
    assert.match(textOf(await gateway.run()), /^200 backend /);
    assert.match(textOf(await afterwards().run()), /^200 kept /);
    assert.equal(textOf(await afterwards().run({ ...COMPLETE, body: {} })), 'conflict');
    assert.deepEqual(gateway.reports, ['first']);
  });

  it('remembers an unknown end: neither this key nor another one on the session is a first call', async () => {
    for (const { key } of [COMPLETE, OTHER_KEY]) {
      const call = { ...COMPLETE, sessionId: `cs_${key}` };
      bed.backend.next(unknown(true));
      assert.equal(textOf(await emptied().run(call)), 'failed: timeout');
      assert.match(textOf(await afterwards().run({ ...call, key })), /^200 session /);
      assert.equal(bed.backend.orders(call.sessionId), 1);
    }
  });
});

describe('when to ask again', () => {
  for (const [ageMs, leftMs, seconds] of [
    [0, 28_000, 1],
    [1_000, 27_000, 1],
    [1_001, 26_999, 2],
    [9_500, 18_500, 10],
    [27_000, 1_000, 1],
    [27_500, 500, 1],
    [30_000, 0, 1],
    [30_000, -5_000, 1],
  ] as const)
    it(`${ageMs} ms old with ${leftMs} ms left: ${seconds} s`, () => assert.equal(retryAfterS(ageMs, leftMs), seconds));
});
