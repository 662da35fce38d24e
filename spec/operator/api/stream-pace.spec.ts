import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { HEARTBEAT_MS, STALLED_MS } from '../../../src/operator/api/stream.ts';
import { eventually } from '../../support/records.ts';
import { append, atRest, openEmbeddedBed } from './stream-bed.ts';

const FAT = { data: { text: 'x'.repeat(1_900) } };
/** Together more than the buffers of two sockets hold. */
const OLD_EVENTS = 9_000;
const RING = { ring: 20_000 };

describe('the heartbeat', () => {
  it('comes every 15 s, on each stream from its own beginning', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { open } = await openEmbeddedBed(t, RING);
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
    const { open, openUnread, store, stream } = await openEmbeddedBed(t, RING);
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
    const { openUnread, written, store, stream } = await openEmbeddedBed(t, RING);
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
    const { openUnread, written, store, stream } = await openEmbeddedBed(t, RING);
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
