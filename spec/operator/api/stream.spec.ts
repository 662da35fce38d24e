import assert from 'node:assert/strict';
import http from 'node:http';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { HEARTBEAT_MS, STALLED_MS } from '../../../src/operator/api/stream.ts';
import { event } from '../../payments/ledger/samples.ts';
import { readStream } from '../../support/event-stream.ts';
import { eventually } from '../../support/records.ts';
import {
  append,
  atRest,
  engines,
  lineBeds,
  openBed,
  openBedFor,
  openEmbeddedBed,
  RING,
  RING_SLACK,
  received,
  recovered,
  TOKEN,
} from './stream-bed.ts';

const OPENING = ': connected\n\nretry: 2000\n\n';

for (const [engine, open] of engines()) {
  const bed = async (t: TestContext) => openBedFor(t, await open());

  describe(`the event stream over ${engine}`, () => {
    it('begins with its comment, names no event type, and carries each event as it is listed, byte for byte', async (t) => {
      const { open: stream, store } = await bed(t);
      await store.feed.append([event('resource.requested', 'before')]);
      const client = await stream();
      assert.equal(client.status, 200);
      assert.equal(client.headers['content-type'], 'text/event-stream');
      assert.equal(client.headers['cache-control'], 'no-store');
      assert.equal(client.headers['x-accel-buffering'], 'no');
      await client.until(({ text }) => text() === OPENING, 'opening');
      // A line break inside an event must not end its line in the frame.
      const data = { text: 'two\nlines\r\nid: evt_1-1\n\n' };
      await store.feed.append([event('backend.failed', 'a', { data }), event('resource.delivered', 'a')]);
      await client.until(({ ids }) => ids().length === 2, 'two events');
      const { events } = await store.feed.page({ limit: 2 });
      const frames = events.toReversed().map((one) => `id: ${one.id}\ndata: ${JSON.stringify(one)}\n\n`);
      assert.equal(client.text(), OPENING + frames.join(''));
      assert.equal(JSON.parse(frames[0]?.split('\ndata: ')[1] ?? '').data.text, data.text);
    });

    it('gives every reader the same events in the same order', async (t) => {
      const { open: stream, store } = await bed(t);
      const clients = await Promise.all([stream(), stream(), stream()]);
      const ids = await append(store, 700);
      for (const client of clients) {
        await client.until((one) => one.ids().length >= ids.length, 'all events');
        assert.deepEqual(client.ids(), ids);
      }
    });

    it('goes on after Last-Event-ID with everything the ring has, then with new events, nothing lost or doubled', async (t) => {
      const { open: stream, store } = await bed(t);
      // More than two pages.
      const old = await append(store, 1_250);
      const [, second = ''] = old;
      const client = await stream(second);
      const live = await append(store, 300);
      const wanted = [...old.slice(2), ...live];
      await client.until(({ ids }) => ids().length >= wanted.length, 'old and new events');
      assert.deepEqual(client.ids(), wanted);
      assert.ok(client.text().startsWith(`${OPENING}id: ${old[2]}\n`));
      assert.ok(!client.text().includes(': gap'));
    });

    it('knows a position however its numbers are written', async (t) => {
      const { open: stream, store } = await bed(t);
      const [first = '', ...rest] = await append(store, 3);
      const [ms = '', seq = ''] = first.slice(4).split('-');
      const client = await stream(`evt_${ms.padStart(16, '0')}-${seq.padStart(10, '0')}`);
      await client.until(({ ids }) => ids().length === 2, 'what follows');
      assert.deepEqual(client.ids(), rest);
      assert.ok(!client.text().includes(': gap'));
    });

    it('joins while events keep coming, nothing lost or doubled', async (t) => {
      const { open: stream, store } = await bed(t);
      const from = (await append(store, 1))[0] ?? '';
      const before = await append(store, 600);
      const writing = append(store, 1_200);
      // A busy store ends a replay, and the reader resumes.
      const read = async (): Promise<readonly string[]> => {
        const got: string[] = [];
        while (got.length < before.length + 1_200) {
          const client = await stream(got.at(-1) ?? from);
          const missing = before.length + 1_200 - got.length;
          await client.until(({ ids }) => ids().length >= missing, 'all events').catch(() => undefined);
          got.push(...client.ids());
        }
        return got;
      };
      const all = await Promise.all(Array.from({ length: 8 }, read));
      const wanted = [...before, ...(await writing)];
      for (const got of all) assert.deepEqual(got, wanted);
    });

    it('sends gap when events after the position were dropped, before those that are left', async (t) => {
      const { open: stream, store } = await bed(t);
      const [lost = ''] = await append(store, 1);
      for (let round = 0; round < 3; round += 1) await append(store, 1_000);
      const client = await stream(lost);
      await client.until(({ ids }) => ids().length >= RING, 'what is left');
      assert.ok(client.ids().length <= RING + RING_SLACK);
      assert.ok(client.text().startsWith(`${OPENING}: gap\n\nid: `));
      assert.equal(client.text().split(': gap').length, 2, 'sent once');
    });

    it('sends no gap when only events before the position were dropped', async (t) => {
      const { open: stream, store } = await bed(t);
      for (let round = 0; round < 2; round += 1) await append(store, 1_000);
      const [kept = '', ...rest] = await append(store, 500);
      const client = await stream(kept);
      await client.until(({ ids }) => ids().length === 499, 'what follows');
      assert.deepEqual(client.ids(), rest);
      assert.ok(!client.text().includes(': gap'));
    });

    for (const position of ['evt_0-0', 'evt_1-1'])
      it(`${position}: everything, and no gap, while nothing was dropped`, async (t) => {
        const { open: stream, store } = await bed(t);
        const ids = await append(store, 5);
        const client = await stream(position);
        await client.until((one) => one.ids().length === 5, 'all events');
        assert.deepEqual(client.ids(), ids);
        assert.ok(!client.text().includes(': gap'));
      });

    it('a position that the ring never reached: gap, and then new events', async (t) => {
      const { open: stream, store } = await bed(t);
      await append(store, 3);
      const client = await stream('evt_9999999999999999-9999999999');
      await client.until(({ text }) => text() === `${OPENING}: gap\n\n`, 'gap');
      const ids = await append(store, 2);
      await client.until((one) => one.ids().length === 2, 'live events');
      assert.deepEqual(client.ids(), ids);
    });

    it('an empty ring is no gap', async (t) => {
      const { open: stream, store } = await bed(t);
      const client = await stream('evt_0-0');
      await client.until(({ text }) => text() === OPENING, 'opening');
      const ids = await append(store, 1);
      await client.until((one) => one.ids().length === 1, 'the first event');
      assert.deepEqual(client.ids(), ids);
    });
  });
}

const ROUTE = '/api/events/stream';

interface Refusal {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly code: string;
  readonly body: { readonly requestId: string; readonly details?: { readonly field?: string } };
}

/** Asks for the stream in a way that is refused. */
async function refused(
  url: string,
  { method = 'GET', path = ROUTE, headers = [] }: { method?: string; path?: string; headers?: readonly string[] },
): Promise<Refusal> {
  const request = http.request(`${url}${path}`, { method, agent: false, headers: [...headers] });
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject).end();
  });
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  const body = JSON.parse(text);
  return { status: response.statusCode ?? 0, headers: response.headers, code: body.code, body };
}

const AUTHORIZED = ['Host', 'shop', 'Authorization', `Bearer ${TOKEN}`];

describe('a request for the stream', () => {
  it('HEAD: the head alone, and no slot is taken', async (t) => {
    const { url, stream } = await openEmbeddedBed(t, { maxStreams: 1 });
    for (let round = 0; round < 3; round += 1) {
      const answer = await fetch(`${url}${ROUTE}`, { method: 'HEAD', headers: { authorization: `Bearer ${TOKEN}` } });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('content-type'), 'text/event-stream');
      assert.equal(await answer.text(), '');
      assert.equal(stream.facts().readers, 0);
    }
  });

  const positions: readonly (readonly [name: string, values: readonly string[]])[] = [
    ['empty', ['']],
    ['no id', ['first']],
    ['without its prefix', ['1700000000000-0']],
    ['without a sequence', ['evt_1700000000000']],
    ['with a range of Redis', ['evt_(1-0']],
    ['with a sign', ['evt_-1-0']],
    ['with 17 digits of milliseconds', ['evt_12345678901234567-0']],
    ['with 11 digits of sequence', ['evt_1-12345678901']],
    ['with something behind it', ['evt_1-0 ,']],
    ['with something before it', ['* evt_1-1']],
    ['with a quote', ["evt_1-1'"]],
    ['with three parts', ['evt_1-1-1']],
    ['with a digit of another script', ['evt_\xb2-1']],
    ['with a prefix in capitals', ['EVT_1-1']],
    ['of Redis for new entries', ['$']],
    ['of Redis for the last entry', ['+']],
    ['twice', ['evt_1-0', 'evt_2-0']],
    ['twice the same', ['evt_1-0', 'evt_1-0']],
  ];
  for (const [name, values] of positions)
    it(`Last-Event-ID ${name} is refused`, async (t) => {
      const { url, stream } = await openEmbeddedBed(t);
      const headers = [...AUTHORIZED, ...values.flatMap((value) => ['Last-Event-ID', value])];
      const { status, code, body } = await refused(url, { headers });
      assert.deepEqual([status, code, body.details?.field], [400, 'INPUT_INVALID', 'Last-Event-ID']);
      assert.equal(stream.facts().readers, 0);
    });

  it('16 digits of milliseconds and 10 of sequence are a position', async (t) => {
    const { open } = await openEmbeddedBed(t);
    assert.equal((await open('evt_1234567890123456-1234567890')).status, 200);
  });
});

describe('the slots of the stream', () => {
  it('leave one to others; the next reader gets Retry-After 5 s, and a slot that was left is free again', async (t) => {
    const { url, open, stream } = await openEmbeddedBed(t, { maxStreams: 3 });
    const [first] = await Promise.all([open(), open()]);
    const { status, code, headers } = await refused(url, { headers: AUTHORIZED });
    assert.deepEqual([status, code, headers['retry-after']], [503, 'GATEWAY_BUSY', '5']);
    const head = await fetch(`${url}${ROUTE}`, { method: 'HEAD', headers: { authorization: `Bearer ${TOKEN}` } });
    assert.equal(head.status, 503);
    assert.equal(stream.facts().readers, 2);
    first?.leave();
    await eventually(async () => (stream.facts().readers === 1 ? true : undefined), 'a slot');
    assert.equal((await open()).status, 200);
  });

  it('are not taken by a refused request', async (t) => {
    const { url, open } = await openEmbeddedBed(t, { maxStreams: 1 });
    await refused(url, { headers: ['Host', 'shop'] });
    await refused(url, { headers: [...AUTHORIZED, 'Last-Event-ID', 'first'] });
    await refused(url, { method: 'POST', headers: AUTHORIZED });
    assert.equal((await open()).status, 200);
  });
});

describe('the stream and the end of the process', () => {
  const bounds = { propagationMs: 0, finishMs: 5_000, stopListening: () => undefined };

  it('ends with a last comment when the drain begins, and a new one is sent to another process', async (t) => {
    const { url, open, store, lifecycle, stream } = await openEmbeddedBed(t);
    const [first = ''] = await append(store, 3);
    const clients = [await open(), await open(first)];
    await clients[1]?.until(({ ids }) => ids().length === 2, 'old events');
    const drained = lifecycle.drain(bounds);
    for (const client of clients) {
      await client.ended;
      assert.ok(client.text().endsWith('\n\n: draining\n\n'), client.text());
    }
    await drained;
    const { status, code, headers } = await refused(url, { headers: AUTHORIZED });
    assert.deepEqual([status, code, headers['retry-after']], [503, 'GATEWAY_BUSY', '1']);
    assert.equal(stream.facts().readers, 0);
  });

  it('does not wait for a reader that does not read', async (t) => {
    const { openUnread, store, lifecycle, stream, written, unsent } = await openEmbeddedBed(t);
    await openUnread(t);
    await eventually(async () => (stream.facts().readers === 1 ? true : undefined), 'a reader');
    // Until the sockets are full, and not so much that the reader is cut.
    while (unsent() === 0) {
      await append(store, 50, { data: { text: 'x'.repeat(1_900) } });
      await atRest(written);
    }
    assert.equal(stream.facts().cut, 0);
    const at = performance.now();
    await lifecycle.drain(bounds);
    await eventually(async () => (stream.facts().readers === 0 ? true : undefined), 'no reader');
    assert.ok(performance.now() - at < 2_000, 'the reader delays the drain');
  });
});

const { admin, server, bed } = lineBeds();

describe('streams over a ring that lost its data', () => {
  it('whose ids begin anew: gap, and then new events', async (t) => {
    const { open, store, key, troubles } = await bed(t);
    const client = await open();
    const [first = ''] = await append(store, 1);
    await client.until(({ ids }) => ids().length === 1, 'the first');
    await admin().del(key);
    // As a clock that went back would number them.
    await client.until(() => received(client).length === 2, 'gap');
    for (const id of ['5-1', '5-2']) await admin().xadd(key, id, 'e', JSON.stringify({ type: 'backend.called' }));
    await client.until(({ ids }) => ids().length === 3, 'what happens then');
    assert.deepEqual(received(client), [first, 'gap', 'evt_5-1', 'evt_5-2']);
    assert.equal(troubles.length, 0, 'waiting in quiet times is none');
  });

  it('to a reader beyond the live events: gap, and later events come too', async (t) => {
    const { line, store, other, key } = await bed(t);
    // Pages come from Redis itself, live events over the line.
    const split = await openBed({ ...other, feed: { ...other.feed, tail: () => store.feed.tail() } });
    const { troubles } = split;
    t.after(() => split.close());
    const before = await split.open();
    const [first = ''] = await append(other, 1);
    await before.until(({ ids }) => ids().length === 1, 'the first');
    line.cut();
    await eventually(async () => (troubles.length > 0 ? true : undefined), 'trouble');
    const missed = await append(other, 3);
    const client = await split.open(first);
    await client.until(({ ids }) => ids().length === 3, 'old events');
    await admin().del(key);
    line.mend();
    await client.until(() => received(client).includes('gap'), 'gap');
    await admin().xadd(key, '5-1', 'e', JSON.stringify({ type: 'backend.called' }));
    await client.until(({ ids }) => ids().length === 4, 'what happens then');
    assert.deepEqual(received(client), [...missed, 'gap', 'evt_5-1']);
  });

  it('whose ids go on: gap, and then new events', async (t) => {
    const { open, line, store, other, key, troubles } = await bed(t);
    const client = await open();
    const [first = ''] = await append(store, 1);
    await client.until(({ ids }) => ids().length === 1, 'the first');
    line.cut();
    await eventually(async () => (troubles.length > 0 ? true : undefined), 'trouble');
    await admin().del(key);
    const later = await append(other, 3);
    line.mend();
    await client.until(({ ids }) => ids().length === 4, 'what happens then');
    assert.deepEqual(received(client), [first, 'gap', ...later]);
  });
});

describe('what follows the ring', () => {
  const tails = async () =>
    String(await admin().client('LIST'))
      .split('\n')
      .filter((line) => / name=acg-tail-/.test(line));

  it('one connection for all readers, none without readers', async (t) => {
    const { open, stream, other } = await bed(t);
    assert.equal((await tails()).length, 0);
    const clients = await Promise.all(Array.from({ length: 5 }, () => open()));
    await append(other, 1);
    for (const client of clients) await client.until(({ ids }) => ids().length === 1, 'an event');
    assert.equal((await tails()).length, 1);
    for (const client of clients) client.leave();
    await eventually(async () => ((await tails()).length === 0 ? true : undefined), 'no connection');
    assert.equal(stream.facts().silentMs, 0);
    const again = await open();
    await append(other, 1);
    await again.until(({ ids }) => ids().length === 1, 'an event');
  });

  it('an entry that is no event is passed over', async (t) => {
    const { open, other, key } = await bed(t);
    const client = await open();
    await admin().xadd(key, '*', 'e', 'not json\n\nid: evt_1-1');
    const ids = await append(other, 1);
    await client.until((one) => one.ids().length === 1, 'an event');
    assert.deepEqual(client.ids(), ids);
  });
});

const FAT = { data: { text: 'x'.repeat(1_900) } };
/** Together more than the buffers of two sockets hold. */
const OLD_EVENTS = 9_000;
const LONG_RING = { ring: 20_000 };

describe('the heartbeat', () => {
  it('comes every 15 s, on each stream from its own beginning', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { open } = await openEmbeddedBed(t, LONG_RING);
    const first = await open();
    await first.until(({ text }) => text().includes('retry'), 'opening');
    const opening = first.text();
    t.mock.timers.tick(HEARTBEAT_MS - 1);
    const second = await open();
    await second.until(({ text }) => text() === opening, 'opening');
    assert.equal(first.text(), opening);
    t.mock.timers.tick(1);
    await first.until(({ text }) => text() === `${opening}: heartbeat\n\n`, 'heartbeat');
    t.mock.timers.tick(HEARTBEAT_MS);
    await first.until(({ text }) => text() === `${opening}${': heartbeat\n\n'.repeat(2)}`, 'second heartbeat');
    await second.until(({ text }) => text() === `${opening}: heartbeat\n\n`, 'heartbeat');
  });
});

describe('a slow reader', () => {
  it('of live events is cut with more than 1 MiB unsent and counted; the others get every event', async (t) => {
    const { open, openUnread, store, stream } = await openEmbeddedBed(t, LONG_RING);
    const client = await open();
    await openUnread(t);
    await eventually(async () => (stream.facts().readers === 2 ? true : undefined), 'two readers');
    const ids: string[] = [];
    while (stream.facts().cut === 0) {
      ids.push(...(await append(store, 500, FAT)));
      await client.until((one) => one.ids().length >= ids.length, 'every event');
      assert.ok(ids.length < 20_000, 'the reader is never cut');
    }
    assert.deepEqual(client.ids(), ids);
    await eventually(async () => (stream.facts().readers === 1 ? true : undefined), 'one reader');
    assert.equal(stream.facts().cut, 1);
  });

  it('of old events is waited for, and cut after 30 s in which it took nothing', async (t) => {
    const { openUnread, written, store, stream } = await openEmbeddedBed(t, LONG_RING);
    await append(store, OLD_EVENTS, FAT);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    await openUnread(t, 'evt_0-0');
    await atRest(written);
    t.mock.timers.tick(STALLED_MS - 1);
    await turn();
    assert.deepEqual(stream.facts().readers, 1);
    assert.equal(stream.facts().cut, 0);
    t.mock.timers.tick(1);
    await turn();
    assert.equal(stream.facts().cut, 1);
  });

  it('of old events is not cut as long as it takes some', async (t) => {
    const { openUnread, written, store, stream } = await openEmbeddedBed(t, LONG_RING);
    await append(store, OLD_EVENTS, FAT);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const socket = await openUnread(t, 'evt_0-0');
    for (let taken = 0; taken < 3; taken += 1) {
      await atRest(written);
      t.mock.timers.tick(STALLED_MS - 1);
      const before = socket.bytesRead;
      socket.resume();
      while (socket.bytesRead < before + 4_000_000) await turn();
      socket.pause();
    }
    assert.equal(stream.facts().cut, 0);
    assert.equal(stream.facts().readers, 1);
  });
});

describe('streams while Redis is away', () => {
  it('kill -9: no reader is cut, and all events come when the server is back', async (t) => {
    const { open, store, other, troubles } = await bed(t);
    const client = await open();
    const before = await append(other, 300);
    await client.until(({ ids }) => ids().length === 300, 'what came before');
    await server().kill();
    await eventually(async () => (troubles.length > 0 ? true : undefined), 'trouble');
    await server().restart();
    await recovered(other);
    const later = await append(other, 300);
    await client.until(({ ids }) => ids().length >= 600, 'what came later');
    assert.deepEqual(received(client), [...before, ...later]);
    assert.equal(troubles.length, 1, 'reported once');
    await recovered(store);
  });

  it('what others wrote meanwhile comes when the line is open again, without a gap', async (t) => {
    const { open, line, other, troubles } = await bed(t);
    const client = await open();
    const first = await append(other, 1);
    await client.until(({ ids }) => ids().length === 1, 'the first');
    line.cut();
    await eventually(async () => (troubles.length > 0 ? true : undefined), 'trouble');
    const missed = await append(other, 1_200);
    line.mend();
    await client.until(({ ids }) => ids().length >= 1_201, 'what was missed');
    assert.deepEqual(received(client), [...first, ...missed]);
  });

  it('more than the ring holds was written meanwhile: gap, and then what is left', async (t) => {
    const { open, line, other, troubles } = await bed(t);
    const client = await open();
    const first = await append(other, 1);
    await client.until(({ ids }) => ids().length === 1, 'the first');
    line.cut();
    await eventually(async () => (troubles.length > 0 ? true : undefined), 'trouble');
    for (let round = 0; round < 2; round += 1) await append(other, 1_000);
    const last = await append(other, 1_000);
    line.mend();
    await client.until(({ ids }) => ids().at(-1) === last.at(-1), 'the last');
    const [one, gap, ...rest] = received(client);
    assert.deepEqual([one, gap], [first[0], 'gap']);
    assert.ok(rest.length >= RING && !rest.includes('gap'));
    assert.deepEqual(rest.slice(-last.length), last);
  });

  it('a new stream is refused as long as the store gives no answer', async (t) => {
    const { url, line, store } = await bed(t);
    line.cut();
    for (const lastEventId of [undefined, 'evt_1-1']) {
      const refused = await readStream(url, { token: TOKEN, ...(lastEventId === undefined ? {} : { lastEventId }) });
      await refused.ended;
      assert.deepEqual([refused.status, JSON.parse(refused.text()).code], [503, 'STORAGE_ERROR']);
    }
    line.mend();
    await recovered(store);
    const client = await readStream(url, { token: TOKEN });
    assert.equal(client.status, 200);
    client.leave();
  });

  it('a store that fails under a replay ends it where the reader can go on', async (t) => {
    const { line, store, other } = await bed(t);
    const ids = await append(other, 1_900);
    const [from = ''] = ids;
    let pages = 0;
    const failing = await openBed({
      ...store,
      feed: {
        ...store.feed,
        after(position, count) {
          pages += 1;
          if (pages === 2) line.cut();
          return store.feed.after(position, count);
        },
      },
    });
    t.after(() => failing.close());
    const client = await failing.open(from);
    await client.ended;
    assert.ok(!client.text().includes(': draining'), 'the process goes on');
    line.mend();
    await recovered(store);
    const got = client.ids();
    assert.equal(got.length, 500, 'one page');
    const again = await failing.open(got.at(-1));
    await again.until((one) => one.ids().length >= 1_399, 'the rest');
    assert.deepEqual([...got, ...again.ids()], ids.slice(1));
  });
});
