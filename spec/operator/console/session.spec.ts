import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it, mock } from 'node:test';
import { openGateway, Refusal } from '../../../src/operator/console/gateway.js';
import {
  catchUp,
  createSession,
  createWatch,
  cursorAt,
  LONGEST_RETRY_AFTER_MS,
  LONGEST_WAIT_MS,
  LOOK_EVERY_MS,
  UNDELIVERED_EVERY_MS,
  waitAfter,
} from '../../../src/operator/console/session.js';
import { RECEIPT_ID } from '../../../src/receipts/receipt.ts';
import { MAX_FAILED_ATTEMPTS } from '../../../src/server/limits/rates.ts';
import { OPERATOR_TOKEN } from '../../support/gateway.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { buy, event, oldReceipt } from './sample-calls.ts';

describe('what the console learns of a gateway', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  const asked: string[] = [];
  const openSession = () => {
    const ask: typeof fetch = (url, init) => {
      asked.push(String(url).slice(testbed.gateway.url.length));
      return fetch(url, init);
    };
    return createSession(openGateway(OPERATOR_TOKEN, { base: new URL(`${testbed.gateway.url}/`), ask }));
  };
  const sum = (session: ReturnType<typeof openSession>) => session.receipts.paid().length;

  it('a look takes events, receipts, readiness and names; the next one only what is new', async () => {
    const session = openSession();
    await buy(testbed, 'market_report', { city: 'Berlin' });
    await session.look();
    assert.deepEqual(
      [
        session.calls.list().filter(({ outcome }) => outcome === 'delivered').length,
        sum(session),
        session.facts.readiness?.ready,
      ],
      [1, 1, true],
    );
    assert.deepEqual(
      [session.facts.merchant.name, session.facts.names.get('price_list')],
      ['Market Shop', 'Price list'],
    );
    asked.length = 0;
    await buy(testbed, 'price_list', {});
    await session.look();
    assert.equal(sum(session), 2);
    assert.deepEqual(asked.sort(), ['/api/events?limit=100', '/api/receipts?limit=100', '/ready']);
  });

  it('more than a page of new entries is followed to what is known', async () => {
    const session = openSession();
    await session.look();
    const known = session.receipts.size();
    await testbed.gateway.store.feed.append(
      Array.from({ length: 250 }, (_, at) => event('resource.requested', { requestId: `req-many-${at}` })),
    );
    await testbed.gateway.store.receipts.write(
      Array.from({ length: 250 }, (_, at) => oldReceipt(at, { delivered: true }, -1_000)),
    );
    await session.look();
    assert.equal(session.receipts.size(), known + 250);
    assert.equal(session.calls.list().filter(({ requestId }) => requestId.startsWith('req-many-')).length, 250);
    assert.equal(session.hasGap(), false);
  });

  it('more than it follows is a gap', async () => {
    const session = openSession();
    await session.look();
    await testbed.gateway.store.receipts.write(
      Array.from({ length: 1_001 }, (_, at) => oldReceipt(at, { delivered: true }, -60_000)),
    );
    await session.look();
    assert.equal(session.hasGap(), true);
  });

  it('receipts before the first page are read on demand, page by page', async () => {
    const session = openSession();
    await session.look();
    assert.deepEqual([session.receipts.size(), session.hasOlder()], [500, true]);
    await session.readOlder();
    assert.equal(session.receipts.size(), 1_000);
    while (session.hasOlder()) await session.readOlder();
    const all = session.receipts.size();
    await session.readOlder();
    assert.equal(session.receipts.size(), all);
    assert.ok(all > 1_250, 'to the first one');
  });

  it('an undelivered payment of any age is found, and leaves the list when it has been delivered after all', async (t) => {
    const forgotten = oldReceipt(1, { metadata: { refundDue: true } }, 90 * 3_600_000);
    const collected = oldReceipt(2, {}, 20 * 3_600_000);
    const { receipts } = testbed.gateway.store;
    await receipts.write([forgotten, collected]);
    const session = openSession();
    await session.look();
    const due = () => session.undelivered.all().map(({ requestId }) => requestId);
    assert.deepEqual(due().sort(), ['req-old-1', 'req-old-2']);
    assert.equal(session.receipts.knows(forgotten.id), false, 'the sums stay those of the newest receipts');
    await receipts.write([{ ...collected, delivered: true, deliveredAt: new Date().toISOString() }]);
    await session.look();
    assert.equal(due().length, 2, 'the list costs the store a search: it is not read on every look');
    const now = Date.now() + UNDELIVERED_EVERY_MS;
    t.mock.method(Date, 'now', () => now);
    await session.look();
    mock.restoreAll();
    assert.deepEqual(due(), ['req-old-1']);
  });

  it('a wrong token costs one try; nothing else is asked', async () => {
    const wrong: string[] = [];
    const ask: typeof fetch = (url, init) => {
      wrong.push(String(url).slice(testbed.gateway.url.length));
      return fetch(url, init);
    };
    const signIn = () =>
      createSession(openGateway('wrong-token', { base: new URL(`${testbed.gateway.url}/`), ask })).look();
    for (let tries = 0; tries < MAX_FAILED_ATTEMPTS; tries += 1) await assert.rejects(signIn(), { kind: 'token' });
    await assert.rejects(signIn(), {
      kind: 'guesses',
      message: /^Too many wrong tokens from here; wait \d+ s\. The right one still works\.$/,
    });
    assert.deepEqual(wrong, new Array(MAX_FAILED_ATTEMPTS + 1).fill('/api/events?limit=500'));
    const right = openSession();
    await right.look();
    assert.ok(right.calls.list().length > 0, 'the right one still works');
  });

  it('what is ready is not known while the gateway does not answer, and known again when it does', async () => {
    let away = false;
    const ask: typeof fetch = (url, init) => (away ? Promise.reject(new TypeError('cut')) : fetch(url, init));
    const session = createSession(openGateway(OPERATOR_TOKEN, { base: new URL(`${testbed.gateway.url}/`), ask }));
    const answered: boolean[] = [session.facts.readinessAnswered];
    for (away of [false, true, false]) {
      await session.look().catch(() => undefined);
      answered.push(session.facts.readinessAnswered);
    }
    assert.deepEqual(answered, [false, true, false, true]);
  });

  it('what can be read is taken although something else fails', async () => {
    const ask: typeof fetch = (url, init) =>
      String(url).includes('/api/events') ? Promise.reject(new TypeError('cut')) : fetch(url, init);
    const session = createSession(openGateway(OPERATOR_TOKEN, { base: new URL(`${testbed.gateway.url}/`), ask }));
    await assert.rejects(session.look(), { kind: 'away' });
    assert.deepEqual(
      [session.calls.list().length, session.receipts.size(), session.facts.readiness?.ready],
      [0, 500, true],
    );
  });
});

/** A feed of numbered entries, newest first, in pages of three. */
function feed(entries: readonly number[]) {
  const ids = entries.map(String);
  return async (cursor: string | undefined) => {
    const from = cursor === undefined ? 0 : ids.indexOf(cursor) + 1;
    const items = ids.slice(from, from + 3).map((id) => ({ id }));
    const more = from + 3 < ids.length;
    return { items, ...(more ? { next: items.at(-1)?.id } : {}) };
  };
}

describe('reading what is new of a feed', () => {
  for (const { rule, entries, known, pages, read, joined, next } of [
    { rule: 'an empty feed is known at once', entries: [], known: [], pages: 2, read: '', joined: true },
    { rule: 'everything of a short one', entries: [2, 1], known: [], pages: 2, read: '2 1', joined: true },
    {
      rule: 'no further than a page with a known entry',
      entries: [5, 4, 3, 2, 1],
      known: [3],
      pages: 9,
      read: '5 4 3',
      joined: true,
      next: '3',
    },
    {
      rule: 'the rest of that page too',
      entries: [5, 4, 3, 2],
      known: [5],
      pages: 9,
      read: '5 4 3',
      joined: true,
      next: '3',
    },
    {
      rule: 'page after page',
      entries: [7, 6, 5, 4, 3, 2, 1],
      known: [2],
      pages: 9,
      read: '7 6 5 4 3 2',
      joined: true,
      next: '2',
    },
    {
      rule: 'not more pages than allowed',
      entries: [7, 6, 5, 4, 3, 2, 1],
      known: [1],
      pages: 2,
      read: '7 6 5 4 3 2',
      joined: false,
      next: '2',
    },
  ] as const)
    it(rule, async () => {
      const seen: ReadonlySet<string> = new Set(known.map(String));
      const caught = await catchUp(feed(entries), (id) => seen.has(id), { pages });
      assert.equal(caught.items.map(({ id }) => id).join(' '), read);
      assert.deepEqual([caught.joined, caught.next], [joined, next]);
    });

  it('a page may be empty and still lead on: a filter found nothing there', async () => {
    const pages = [{ items: [], next: 'a' }, { items: [{ id: '1' }] }];
    const caught = await catchUp(
      async (cursor) => pages[cursor === undefined ? 0 : 1] ?? assert.fail(),
      () => false,
      { pages: 5 },
    );
    assert.deepEqual([caught.items, caught.joined], [[{ id: '1' }], true]);
  });
});

describe('the cursor that begins with a receipt', () => {
  for (const [tail, next] of [
    ['000000000001', '000000000002'],
    ['0000000000ff', '000000000100'],
    ['aaaaaaaaaaa9', 'aaaaaaaaaaaa'],
  ] as const)
    it(`${tail} is followed by ${next}`, () => {
      const cursor = cursorAt(`receipt_01890000-0000-7000-8000-${tail}`);
      assert.equal(cursor, `receipt_01890000-0000-7000-8000-${next}`);
      assert.match(cursor, RECEIPT_ID);
    });
});

describe('waiting after failures', () => {
  for (const { failures, retryAfterS, waits } of [
    { failures: 1, waits: LOOK_EVERY_MS },
    { failures: 2, waits: 2 * LOOK_EVERY_MS },
    { failures: 4, waits: 8 * LOOK_EVERY_MS },
    { failures: 5, waits: LONGEST_WAIT_MS },
    { failures: 1_000, waits: LONGEST_WAIT_MS },
    { failures: 1, retryAfterS: 1, waits: LOOK_EVERY_MS },
    { failures: 1, retryAfterS: 60, waits: 60_000 },
    { failures: 1, retryAfterS: 299, waits: 299_000 },
    { failures: 1, retryAfterS: 301, waits: LONGEST_RETRY_AFTER_MS },
  ])
    it(`${failures} in a row, Retry-After ${retryAfterS ?? 'absent'}: ${waits} ms`, () =>
      assert.equal(waitAfter(failures, retryAfterS), waits));
});

describe('the watch', () => {
  let looks = 0;
  let visible = true;
  let fails: Error | undefined;
  const states: string[] = [];
  const open = () =>
    createWatch({
      look: async () => {
        looks += 1;
        if (fails !== undefined) throw fails;
      },
      onState: ({ kind }) => void states.push(kind),
      visible: () => visible,
    });
  /** Lets the time pass, and the looks that it begins end. */
  const passed = async (ms: number) => {
    mock.timers.tick(ms);
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    looks = 0;
    visible = true;
    fails = undefined;
    states.length = 0;
  });
  afterEach(() => mock.timers.reset());

  it(`looks at once and every ${LOOK_EVERY_MS} ms`, async () => {
    const watch = open();
    await watch.now();
    await passed(LOOK_EVERY_MS - 1);
    assert.equal(looks, 1);
    await passed(1);
    assert.equal(looks, 2);
    watch.end();
    await passed(10 * LOOK_EVERY_MS);
    assert.equal(looks, 2);
  });

  it('pauses while the page is hidden, and looks at once when it is visible again', async () => {
    const watch = open();
    await watch.now();
    visible = false;
    await passed(LOOK_EVERY_MS);
    await passed(60_000);
    assert.deepEqual([looks, states.at(-1)], [1, 'hidden']);
    visible = true;
    await watch.now();
    assert.deepEqual([looks, states.at(-1)], [2, 'live']);
    watch.end();
  });

  it('backs off, and is back at its pace after the first good look', async () => {
    fails = new Refusal('away');
    const watch = open();
    await watch.now();
    await passed(LOOK_EVERY_MS);
    await passed(2 * LOOK_EVERY_MS - 1);
    assert.equal(looks, 2);
    await passed(1);
    assert.deepEqual([looks, states.at(-1)], [3, 'retrying']);
    fails = undefined;
    await watch.now();
    await passed(LOOK_EVERY_MS);
    assert.deepEqual([looks, states.at(-1)], [5, 'live']);
    watch.end();
  });

  for (const kind of ['token', 'missing'] as const)
    it(`ends when the refusal is "${kind}"`, async () => {
      fails = new Refusal(kind);
      const watch = open();
      await watch.now();
      await passed(LONGEST_RETRY_AFTER_MS);
      await watch.now();
      assert.deepEqual([looks, states], [1, ['ended']]);
    });

  it('reports no state of a look that ends after it was ended', async () => {
    const watch = open();
    const looking = watch.now();
    watch.end();
    await looking;
    assert.deepEqual(states, []);
  });
});
