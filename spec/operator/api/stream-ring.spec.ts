import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../support/records.ts';
import { lineBeds, received } from './redis-line-bed.ts';
import { append, openBed } from './stream-bed.ts';

const { admin, bed } = lineBeds();

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
