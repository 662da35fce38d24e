import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import type { EventBatch, EventDraft } from '../../src/events/event.ts';
import { createWriteBehind, type WriteBehindOptions } from '../../src/events/write-behind.ts';

beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
afterEach(() => mock.timers.reset());

function event(n: number): EventDraft {
  const at = '2026-01-02T03:04:05.678Z';
  return { type: 'resource.requested', requestId: String(n), callId: `call_${n}`, resourceId: 'report', at };
}

/** A feed that records its batches, and fails on demand. */
function recordingFeed() {
  const batches: { readonly ids: readonly number[]; readonly batch: EventBatch }[] = [];
  const feed = {
    batches,
    failing: false,
    attempts: 0,
    /** What happens while a batch is on its way. */
    meanwhile(): void {},
    async append(events: readonly EventDraft[], batch?: EventBatch) {
      feed.attempts += 1;
      if (feed.failing) throw new Error('the store is away');
      feed.meanwhile();
      batches.push({ ids: events.map(({ requestId }) => Number(requestId)), batch: batch ?? assert.fail() });
    },
    ids: () => batches.flatMap(({ ids }) => ids),
  };
  return feed;
}

function queueOn(feed: ReturnType<typeof recordingFeed>, options: WriteBehindOptions = {}) {
  const queue = createWriteBehind<EventDraft>(feed.append, options);
  const push = (from: number, to: number): void => {
    for (const n of numbers(from, to)) queue.push(event(n));
  };
  return { queue, push };
}

function numbers(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** Lets a finished append be noticed; no time passes. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

async function pass(ms: number): Promise<void> {
  mock.timers.tick(ms);
  await settled();
}

describe('the queue before the feed', () => {
  it('sends a batch after 25 ms', async () => {
    const feed = recordingFeed();
    const { push } = queueOn(feed);
    push(0, 3);
    await pass(24);
    assert.deepEqual(feed.ids(), []);
    await pass(1);
    assert.deepEqual(
      feed.batches.map(({ ids }) => ids),
      [[0, 1, 2]],
    );
  });

  it('does not wait once 100 events are there, and sends no more than 100 at once', async () => {
    const feed = recordingFeed();
    const { push } = queueOn(feed);
    push(0, 250);
    for (let round = 0; round < 2; round += 1) await pass(1);
    assert.deepEqual(
      feed.batches.map(({ ids }) => ids.length),
      [100, 100],
    );
    await pass(25);
    assert.deepEqual(feed.ids(), numbers(0, 250));
  });

  it('sends in one turn with the queue that it joins, and a queue that fails joins no other', async () => {
    const [events, receipts] = [recordingFeed(), recordingFeed()];
    const behind = queueOn(receipts);
    const ahead = queueOn(events, { onSending: () => behind.queue.join() });
    ahead.push(0, 1);
    await pass(20);
    behind.push(0, 2);
    await pass(5);
    assert.deepEqual([events.ids(), receipts.ids()], [[0], [0, 1]]);
    receipts.failing = true;
    behind.push(2, 3);
    await pass(25);
    ahead.push(1, 2);
    await pass(25);
    assert.deepEqual([events.ids(), receipts.attempts], [[0, 1], 2]);
  });

  it('withdraws the oldest 100 of a request, and the others stay in order', async () => {
    const feed = recordingFeed();
    const { queue, push } = queueOn(feed, { batchSize: 500 });
    push(0, 2);
    for (let n = 0; n < 101; n += 1) queue.push({ ...event(7), durationMs: n });
    push(2, 4);
    const withdrawn = queue.withdraw('7');
    assert.deepEqual(
      withdrawn.map(({ durationMs }) => durationMs),
      numbers(0, 100),
    );
    await pass(25);
    assert.deepEqual(feed.ids(), [0, 1, 7, 2, 3]);
  });

  it('keeps a failed batch, repeats it unchanged under its number, and loses no order', async () => {
    const feed = recordingFeed();
    const errors: unknown[] = [];
    const { push } = queueOn(feed, { onError: (cause) => errors.push(cause) });
    feed.failing = true;
    push(0, 5);
    await pass(25);
    push(5, 8);
    // Pauses of 100, 200 and 400 ms.
    for (const [ms, attempts] of [
      [99, 1],
      [1, 2],
      [199, 2],
      [1, 3],
      [399, 3],
    ] as const) {
      await pass(ms);
      assert.equal(feed.attempts, attempts);
    }
    feed.failing = false;
    await pass(1);
    await pass(25);
    assert.deepEqual(
      feed.batches.map(({ ids }) => ids),
      [
        [0, 1, 2, 3, 4],
        [5, 6, 7],
      ],
    );
    assert.deepEqual(
      feed.batches.map(({ batch }) => batch.sequence),
      [1, 2],
    );
    assert.equal(new Set(feed.batches.map(({ batch }) => batch.queue)).size, 1);
    assert.equal(errors.length, 1);
  });

  it('tries again after 5 s at the latest', async () => {
    const feed = recordingFeed();
    const { push } = queueOn(feed);
    feed.failing = true;
    push(0, 1);
    await pass(25);
    for (let attempt = 0; attempt < 10; attempt += 1) await pass(5_000);
    assert.equal(feed.attempts, 11);
  });

  it('keeps the newest 10,000 while the store is away, and counts what it dropped', async () => {
    const feed = recordingFeed();
    const { push, queue } = queueOn(feed);
    feed.failing = true;
    push(0, 10_000);
    await pass(25);
    assert.equal(queue.dropped(), 0);
    push(10_000, 10_003);
    assert.equal(queue.dropped(), 3);
    feed.failing = false;
    await queue.flush();
    // The batch that was on its way stays; the oldest behind it had to go.
    assert.deepEqual(feed.ids(), [...numbers(0, 100), ...numbers(103, 10_003)]);
  });

  it('sends everything when it is closed, and takes nothing afterwards', async () => {
    const feed = recordingFeed();
    const { push, queue } = queueOn(feed);
    push(0, 150);
    await queue.close();
    assert.deepEqual(feed.ids(), numbers(0, 150));
    push(150, 151);
    assert.equal(queue.dropped(), 1);
    await pass(10_000);
    assert.equal(feed.ids().length, 150);
  });

  it('closes also when the store is away, with one attempt, and counts what is lost', async () => {
    const feed = recordingFeed();
    const { push, queue } = queueOn(feed);
    feed.failing = true;
    push(0, 7);
    await queue.close();
    assert.equal(feed.attempts, 1);
    assert.equal(queue.dropped(), 7);
  });

  it('flushing while a batch is on its way waits for it and for the rest', async () => {
    const feed = recordingFeed();
    const { push, queue } = queueOn(feed, { batchSize: 2 });
    push(0, 2);
    mock.timers.tick(0);
    push(2, 5);
    await queue.flush();
    assert.deepEqual(feed.ids(), numbers(0, 5));
  });

  it('flushing ends while more and more comes: what came meanwhile waits as ever', async () => {
    const feed = recordingFeed();
    const { push, queue } = queueOn(feed, { batchSize: 2 });
    let next = 3;
    feed.meanwhile = () => {
      if (next > 50) return;
      push(next, next + 2);
      next += 2;
    };
    push(0, 3);
    await queue.flush();
    const written = feed.ids();
    assert.ok(written.length >= 3 && written.length <= 6, `${written}`);
    assert.deepEqual(written, numbers(0, written.length));
    feed.meanwhile = () => undefined;
    while (queue.waiting() > 0) await pass(25);
    assert.deepEqual(feed.ids(), numbers(0, next));
  });
});
