import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import {
  type Commit,
  type Commits,
  createTransact,
  type Documents,
  type EntryChange,
  parsed,
  type Stretch,
  type Transact,
} from '../../src/store/port/commit.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { redisCommits } from '../../src/store/redis/commits.ts';
import { redisFeed } from '../../src/store/redis/open.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { appendEvents, sqliteCommits, sqliteFeed } from '../../src/store/sqlite/open.ts';
import { event } from '../payments/ledger/samples.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { modelCommits } from './model.ts';
import { temporaryDirectory } from './opened.ts';

const HOUR_MS = 3_600_000;
const MAX_EVENTS = 1_000;

/** An engine, empty. */
interface Bed {
  readonly store: Commits;
  /** The same data, as another process has it. */
  readonly other: Commits;
  /** The requests of all events, oldest first. */
  events(): Promise<readonly string[]>;
  /** Resolves when the store's clock is so much later, milliseconds. */
  pass(ms: number): Promise<void>;
  /** Sets the store's clock on, or back, while nothing else passes. */
  jump(ms: number): void;
  /** Writes a document past the port. */
  damage(key: string, value: string): Promise<void>;
}

let server: TestRedis;
let redis: Redis;
before(async () => {
  server = await startRedis({ args: ['--appendonly', 'no'] });
  redis = new Redis({ path: server.socketPath });
});
after(async () => {
  redis.disconnect();
  await server.stop();
});
const directory = temporaryDirectory();

const ENGINES: Readonly<Record<string, (t: TestContext) => Bed>> = {
  redis(t) {
    const prefix = `{acg:${randomUUID()}}:`;
    const second = new Redis({ path: server.socketPath });
    t.after(() => second.disconnect());
    const [store, other] = [redis, second].map((one) => redisCommits({ redis: one }, prefix, MAX_EVENTS));
    const feed = redisFeed({ redis, openTail: () => assert.fail('no tail') }, `${prefix}ev`, () => undefined);
    const clock = async () => {
      const [seconds, micros] = await redis.time();
      return Number(seconds) * 1_000 + Number(micros) / 1_000;
    };
    return {
      store: store ?? assert.fail(),
      other: other ?? assert.fail(),
      events: async () => (await feed.page({ limit: 100 })).events.map(({ requestId }) => requestId).toReversed(),
      async pass(ms) {
        const until = (await clock()) + ms;
        while ((await clock()) <= until);
      },
      // To a server whose clock goes on, that of the process goes back.
      jump(ms) {
        const now = performance.now.bind(performance);
        t.mock.method(performance, 'now', () => now() - ms);
      },
      damage: async (key, value) => void (await redis.set(prefix + key, value)),
    };
  },
  sqlite(t) {
    let now = 1_800_000_000_000;
    const path = join(directory, `${randomUUID()}.db`);
    const [database, second] = [1, 2].map(() => openDatabase(path, () => now));
    if (database === undefined || second === undefined) return assert.fail();
    t.after(() => {
      for (const one of [database, second]) one.close();
    });
    const append = { eventsMaxLength: MAX_EVENTS, receiptsMaxLength: 1 };
    const [store, other] = [database, second].map((one) => sqliteCommits(one, () => now, appendEvents(one, append)));
    const feed = sqliteFeed(database);
    const later = (ms: number): void => {
      now += ms;
    };
    return {
      store: store ?? assert.fail(),
      other: other ?? assert.fail(),
      events: async () => (await feed.page({ limit: 100 })).events.map(({ requestId }) => requestId).toReversed(),
      pass: async (ms) => later(ms + 1),
      jump: later,
      async damage(key, value) {
        database.db.prepare('INSERT OR REPLACE INTO documents VALUES (?, ?, NULL, ?)').run(key, 'damaged', value);
      },
    };
  },
  // What the rules of transact and the simulators are tested with.
  model() {
    let now = 1_800_000_000_000;
    const store = modelCommits(() => now);
    const later = (ms: number): void => {
      now += ms;
    };
    return {
      store,
      other: store,
      events: async () => store.events.map(({ requestId }) => requestId),
      pass: async (ms) => later(ms + 1),
      jump: later,
      damage: async (key, value) => store.put(key, value),
    };
  },
};

/** The version of 16 characters that ends with `name`. */
const version = (name: string): string => name.padStart(16, '-');
const put = (key: string, name: string, expect?: string | null) => ({
  ...{ key, version: version(name), value: name },
  ...(expect === undefined ? {} : { expect: expect && version(expect) }),
});
const all: Stretch = { by: 'score', limit: 100 };

async function values(store: Commits, ...keys: readonly string[]): Promise<readonly (string | undefined)[]> {
  return textsOf(await store.read(keys));
}

function textsOf(documents: Documents): readonly (string | undefined)[] {
  return [...documents.values()].map((document) => document?.value);
}

async function commit(store: Commits, ...documents: Commit['documents']): Promise<string> {
  return (await store.commit({ documents }, 'now')).kind;
}

async function enter(store: Commits, ...entries: readonly EntryChange[]): Promise<void> {
  assert.deepEqual(await store.commit({ documents: [], entries }, 'now'), { kind: 'done' });
}

/** Adds one to the number under a key. */
const count = (transact: Transact, key: string): Promise<number> =>
  transact([key], (read) => {
    const answer = Number(read(key)?.value ?? 0) + 1;
    return { answer, changes: { documents: [{ key, value: `${answer}` }] } };
  });

for (const [name, open] of Object.entries(ENGINES)) {
  describe(`${name}: a commit`, () => {
    it('writes documents, entries and events together', async (t) => {
      const { store, events } = open(t);
      const entries = [{ list: 'list', member: 'm', score: 1 }];
      const made = {
        documents: [put('a', 'one', null), put('b', 'two')],
        entries,
        events: [event('payment.settled', 'r')],
      };
      assert.deepEqual(await store.commit(made, 'now'), { kind: 'done' });
      assert.deepEqual(await values(store, 'a', 'c', 'b'), ['one', undefined, 'two']);
      assert.equal((await store.read(['a'])).get('a')?.version, version('one'));
      assert.deepEqual(await store.members('list', all), ['m']);
      assert.deepEqual(await events(), ['r']);
    });

    it('writes nothing after a conflict, and brings what is there of all that it expects', async (t) => {
      const { store, events } = open(t);
      await commit(store, put('a', 'one'), put('b', 'two'));
      const entries = [{ list: 'list', member: 'm', score: 1 }];
      const documents = [put('a', 'new', 'one'), put('b', 'new', 'old'), put('c', 'new', null), put('d', 'new')];
      const found = await store.commit({ documents, entries, events: [event('payment.settled', 'r')] }, 'now');
      assert.ok(found.kind === 'conflict');
      assert.deepEqual([...found.documents.keys()], ['a', 'b', 'c']);
      assert.deepEqual(textsOf(found.documents), ['one', 'two', undefined]);
      assert.deepEqual(found.documents.get('b')?.version, version('two'));
      assert.deepEqual(await values(store, 'a', 'b', 'c', 'd'), ['one', 'two', undefined, undefined]);
      assert.deepEqual([await store.size('list'), await events()], [0, []]);
    });

    it('writes nothing before its time', async (t) => {
      const { store, pass, events } = open(t);
      const early = {
        documents: [put('a', 'one')],
        events: [event('payment.settled', 'r')],
        notBefore: store.now() + 40,
      };
      assert.deepEqual(await store.commit(early, 'now'), { kind: 'early' });
      assert.deepEqual([await values(store, 'a'), await events()], [[undefined], []]);
      await pass(40);
      assert.deepEqual(await store.commit(early, 'now'), { kind: 'done' });
    });

    it('holds what it only expects, and leaves it as it is', async (t) => {
      const { store } = open(t);
      await commit(store, put('a', 'one'));
      const guard = { key: 'a', expect: version('one') };
      assert.equal(await commit(store, guard, put('b', 'two'), { key: 'c', expect: null }), 'done');
      assert.equal(await commit(store, { key: 'a', expect: null }, put('b', 'three')), 'conflict');
      assert.equal(await commit(store, { key: 'c', expect: version('one') }, put('b', 'three')), 'conflict');
      assert.deepEqual(await values(store, 'a', 'b', 'c'), ['one', 'two', undefined]);
    });

    it('writes and deletes without an expectation whatever is there', async (t) => {
      const { store } = open(t);
      for (const name of ['one', 'two']) assert.equal(await commit(store, put('a', name)), 'done');
      assert.deepEqual(await values(store, 'a'), ['two']);
      for (let i = 0; i < 2; i += 1) assert.equal(await commit(store, { key: 'a', value: null }), 'done');
      assert.deepEqual(await values(store, 'a'), [undefined]);
    });

    it('deletes what it expects alone', async (t) => {
      const { store } = open(t);
      await commit(store, put('a', 'one'));
      assert.equal(await commit(store, { key: 'a', expect: version('two'), value: null }), 'conflict');
      assert.equal(await commit(store, { key: 'a', expect: version('one'), value: null }), 'done');
      assert.equal(await commit(store, { key: 'a', expect: version('one'), value: null }), 'conflict');
    });

    it('keeps bytes as they are', async (t) => {
      const { store } = open(t);
      const value = new Uint8Array([0, 10, 255, 13, 0xc3, 0x28]);
      await commit(store, { key: 'a', version: version('one'), value });
      assert.deepEqual(await store.bytes('a'), value);
      assert.equal(await store.bytes('b'), undefined);
    });

    it('has no effect where it has no content', async (t) => {
      const { store } = open(t);
      assert.equal(await commit(store), 'done');
    });
  });

  describe(`${name}: the end of a document`, () => {
    it('makes it absent, for reads and for what is expected', async (t) => {
      const { store, pass } = open(t);
      const ends = store.now() + 40;
      await commit(store, { ...put('a', 'one'), endMs: ends }, put('b', 'two'));
      assert.equal(await commit(store, put('a', 'new', null)), 'conflict');
      await pass(40);
      assert.deepEqual(await values(store, 'a', 'b'), [undefined, 'two']);
      assert.equal(await store.bytes('a'), undefined);
      assert.equal(await commit(store, put('a', 'new', 'one')), 'conflict');
      assert.equal(await commit(store, put('a', 'new', null)), 'done');
      await pass(40);
      assert.deepEqual(await values(store, 'a'), ['new'], 'a value without an end has none');
    });

    it('changes alone, and leaves version and value; makes no document', async (t) => {
      const { store, pass } = open(t);
      const ends = store.now() + 40;
      await commit(store, { ...put('a', 'one'), endMs: ends }, put('b', 'two'));
      const later = { endMs: ends + HOUR_MS };
      assert.equal(await commit(store, { key: 'a', expect: version('one'), ...later }, { key: 'c', ...later }), 'done');
      assert.equal(await commit(store, { key: 'b', endMs: ends }), 'done');
      await pass(40);
      assert.deepEqual(await values(store, 'a', 'b', 'c'), ['one', undefined, undefined]);
      assert.equal(await commit(store, { key: 'a', expect: version('one') }), 'done');
    });

    it('may be over already', async (t) => {
      const { store } = open(t);
      assert.equal(await commit(store, { ...put('a', 'one'), endMs: store.now() - HOUR_MS }), 'done');
      assert.deepEqual(await values(store, 'a'), [undefined]);
    });
  });

  describe(`${name}: a list`, () => {
    const scored = (...entries: readonly (readonly [string, number])[]) =>
      entries.map(([member, score]) => ({ list: 'list', member, score }));

    it('is in the order of scores, and of bytes within a score', async (t) => {
      const { store } = open(t);
      await enter(store, ...scored(['b', 2], ['é', 1], ['a', 1], ['Z', 1], ['c', 1.8e12], ['n', -1]));
      const ordered = ['n', 'Z', 'a', 'é', 'b', 'c'];
      assert.deepEqual(await store.members('list', all), ordered);
      assert.deepEqual(await store.members('list', { ...all, latest: true }), ordered.toReversed());
      assert.deepEqual(await store.members('list', { ...all, offset: 1, limit: 2 }), ['Z', 'a']);
      assert.deepEqual(await store.members('list', { ...all, latest: true, offset: 4, limit: 9 }), ['Z', 'n']);
      assert.deepEqual(await store.members('other', all), []);
      assert.deepEqual([await store.size('list'), await store.size('other')], [6, 0]);
    });

    it('is bounded by scores, these included', async (t) => {
      const { store } = open(t);
      await enter(store, ...scored(['a', 1], ['b', 2], ['c', 3]));
      assert.deepEqual(await store.members('list', { ...all, above: 2 }), ['b', 'c']);
      assert.deepEqual(await store.members('list', { ...all, below: 2, latest: true }), ['b', 'a']);
      assert.deepEqual(await store.members('list', { ...all, above: 2, below: 2 }), ['b']);
    });

    it('is bounded by members, these excluded', async (t) => {
      const { store } = open(t);
      await enter(store, ...scored(['a', 0], ['b', 0], ['ba', 0], ['c', 0]));
      const by = { by: 'member', limit: 100 } as const;
      assert.deepEqual(await store.members('list', { ...by, above: 'a' }), ['b', 'ba', 'c']);
      assert.deepEqual(await store.members('list', { ...by, below: 'ba', latest: true }), ['b', 'a']);
      assert.deepEqual(await store.members('list', { ...by, above: 'a', below: 'c', offset: 1, limit: 9 }), ['ba']);
      assert.deepEqual(await store.members('list', { ...by, latest: true, limit: 1 }), ['c']);
    });

    it('has a member once, by its last score, until it is removed', async (t) => {
      const { store } = open(t);
      await enter(store, ...scored(['a', 1], ['b', 2]));
      await enter(store, ...scored(['a', 3]));
      assert.deepEqual(await store.members('list', all), ['b', 'a']);
      await enter(store, { list: 'list', member: 'b' }, { list: 'list', member: 'never' });
      assert.deepEqual(await store.members('list', all), ['a']);
    });

    it('takes thousands of entries of one commit, and removes them', async (t) => {
      const { store } = open(t);
      const many = Array.from({ length: 9_001 }, (_, i) => ({ list: 'list', member: `m${i}` }));
      await enter(store, ...many.map((entry) => ({ ...entry, score: 1 })));
      assert.equal(await store.size('list'), many.length);
      await enter(store, ...many.slice(1));
      assert.deepEqual(await store.members('list', all), ['m0']);
    });
  });

  describe(`${name}: commits of one turn`, () => {
    it('have each a fate of their own, in their order', async (t) => {
      const { store } = open(t);
      await commit(store, put('there', 'one'));
      const made = await Promise.all(
        Array.from({ length: 100 }, (_, i) => {
          const documents = [put(`k${i}`, `n${i}`, null), ...(i % 7 === 3 ? [{ key: 'there', expect: null }] : [])];
          return store.commit({ documents, ...(i % 7 === 5 ? { notBefore: store.now() + HOUR_MS } : {}) }, 'now');
        }),
      );
      for (const [i, { kind }] of made.entries()) {
        const [wanted, value] = i % 7 === 3 ? ['conflict'] : i % 7 === 5 ? ['early'] : ['done', `n${i}`];
        assert.deepEqual([kind, ...(await values(store, `k${i}`))], [wanted, value]);
      }
      const race = await Promise.all(['one', 'two'].map((one) => commit(store, put('raced', one, null))));
      assert.deepEqual([race, await values(store, 'raced')], [['done', 'conflict'], ['one']]);
    });
  });

  describe(`${name}: transactions`, () => {
    it('of two processes on one document are decided one on the other', async (t) => {
      const { store, other } = open(t);
      const [one, two] = [createTransact(store), createTransact(other)];
      for (const transact of [one, two, one]) await count(transact, 'n');
      const counted = await Promise.all(Array.from({ length: 40 }, (_, i) => count(i % 2 === 0 ? one : two, 'n')));
      assert.deepEqual(
        counted.toSorted((a, b) => a - b),
        Array.from({ length: 40 }, (_, i) => i + 4),
      );
    });

    it('on one document at once are all decided, 200 of them', async (t) => {
      const { store } = open(t);
      const transact = createTransact(store);
      await Promise.all(Array.from({ length: 200 }, () => count(transact, 'n')));
      assert.deepEqual(await values(store, 'n'), ['200']);
    });

    it('are decided again when they are repeated after a lost reply', async (t) => {
      const { store, events } = open(t);
      let lost = false;
      const transact = createTransact({
        ...store,
        async commit(...made) {
          const committed = await store.commit(...made);
          if (lost) return committed;
          lost = true;
          throw new StoreError(new Error('the reply is lost'));
        },
      });
      const once = () =>
        transact(['a'], (read) => {
          if (read('a') !== undefined) return { answer: 'again' };
          return {
            answer: 'first',
            changes: { documents: [{ key: 'a', value: 'x' }], events: [event('payment.settled', 'r')] },
          };
        });
      await assert.rejects(once(), StoreError);
      assert.equal(await once(), 'again');
      assert.deepEqual(await events(), ['r']);
    });

    for (const ms of [HOUR_MS, -HOUR_MS])
      it(`are decided by a clock that jumped by ${ms / HOUR_MS} h`, async (t) => {
        const { store, jump } = open(t);
        const transact = createTransact(store);
        await count(transact, 'n');
        const before = store.now();
        jump(ms);
        const decidedAt = await transact(['a'], (_, now) => ({
          answer: now,
          changes: { documents: [{ key: 'a', value: 'x', endMs: now + 60_000 }] },
        }));
        // A jump of Redis is one of the process against it.
        const wanted = name === 'redis' ? before : before + ms;
        assert.ok(Math.abs(decidedAt - wanted) < 5_000, `${decidedAt - before} ms`);
        assert.ok(Math.abs(store.now() - wanted) < 5_000, `${store.now() - before} ms`);
        assert.deepEqual(await values(store, 'a', 'n'), ['x', '1']);
        assert.equal(await count(transact, 'n'), 2);
      });

    it('fail on a damaged document by one error that names it, and touch nothing else', async (t) => {
      const { store, damage } = open(t);
      await damage('bad', 'no');
      const transact = createTransact(store);
      const copied = (from: string) =>
        transact([from, 'copy'], (read) => {
          const value = JSON.stringify(parsed(from, read(from)) ?? null);
          return { answer: value, changes: { documents: [{ key: 'copy', value }] } };
        });
      const answers = await Promise.allSettled([copied('bad'), copied('good')]);
      assert.deepEqual(answers[1], { status: 'fulfilled', value: 'null' });
      const [first] = answers;
      assert.ok(first?.status === 'rejected' && first.reason instanceof StoreError);
      assert.match(String(first.reason.cause), /bad/);
      assert.deepEqual(await values(store, 'copy'), ['null']);
    });
  });
}

describe('redis: a key of another type', () => {
  it('fails its commit alone, with an error that names it', async () => {
    const prefix = `{acg:${randomUUID()}}:`;
    const store = redisCommits({ redis }, prefix, MAX_EVENTS);
    await redis.hset(`${prefix}hash`, 'a', 'b');
    await redis.set(`${prefix}list`, 'a');
    const entries = [{ list: 'list', member: 'm', score: 1 }];
    const [sound, inDocument, inList, last] = await Promise.allSettled([
      store.commit({ documents: [put('a', 'one')] }, 'now'),
      store.commit({ documents: [put('b', 'two', null), put('hash', 'two', null)] }, 'now'),
      store.commit({ documents: [put('c', 'three', null)], entries }, 'now'),
      store.commit({ documents: [put('d', 'four')] }, 'now'),
    ]);
    for (const done of [sound, last]) assert.deepEqual(done, { status: 'fulfilled', value: { kind: 'done' } });
    for (const [failed, named] of [
      [inDocument, /:hash: WRONGTYPE/],
      [inList, /:list: WRONGTYPE/],
    ] as const) {
      assert.ok(failed?.status === 'rejected' && failed.reason instanceof StoreError);
      assert.match(String(failed.reason.cause), named);
    }
    assert.deepEqual(await values(store, 'a', 'b', 'c', 'd'), ['one', undefined, undefined, 'four']);
  });
});
