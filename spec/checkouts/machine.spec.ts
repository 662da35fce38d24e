import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CHECKOUT_CHANNEL } from '../../src/checkouts/attempts.ts';
import type { SealingKey } from '../../src/crypto/seal.ts';
import {
  bytesOf,
  COMPLETE,
  DAY_MS,
  freshBed,
  LOST,
  NOT_EXECUTED,
  OTHER_SECRET,
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
  const spelled = { ...COMPLETE, body: { a: 1, b: [{ c: 2, d: 3 }] } };
  story(bed, 'is the same call when its body is spelled otherwise', {}, [
    ['200 backend', spelled],
    ['200 kept', { ...COMPLETE, body: { b: [{ d: 3, c: 2 }], a: 1 } }],
    ['conflict', { ...COMPLETE, body: { ...spelled.body, e: null } }],
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

  it('20 at the same time: one runs, nineteen are in flight', async () => {
    const ends = await Promise.all(Array.from({ length: 20 }, () => bed.gateway().run()));
    assert.equal(ends.filter((end) => end.kind === 'answered').length, 1);
    assert.equal(ends.filter((end) => end.kind === 'in_flight').length, 19);
    assert.equal(bed.backend.orders('cs_1'), 1);
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
    for (const call of calls) assert.match(textOf(await gateway.run(call)), /^200 backend /, JSON.stringify(call));
    for (const call of calls) assert.match(textOf(await gateway.run(call)), /^200 kept /);
    assert.equal(new Set(bed.backend.posts.map(({ backendKey }) => backendKey)).size, calls.length);
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

  it('has another name under another secret: a change frees every key', async () => {
    await bed.gateway().run();
    assert.match(textOf(await bed.gateway({ settings: OTHER_SECRET }).run()), /^200 backend /);
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

  it('is noticed by one of many calls at a time', async () => {
    await gateway(OLD).run();
    bed.backend.nextReads({ shows: 'unreadable' });
    const ends = await Promise.all(Array.from({ length: 10 }, () => gateway(NEW).run()));
    assert.deepEqual(new Set(ends.map(textOf)), new Set(['in_flight 1']));
    assert.equal(bed.backend.posts.length, 1);
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
