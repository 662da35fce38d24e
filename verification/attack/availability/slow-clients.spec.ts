import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startWorld } from '../../../spec/support/world.ts';
import { attack } from '../catalogue.ts';
import { type Target, targetOf } from '../target.ts';
import { type Flood, startFlood } from './flood.ts';
import type { LoadReport } from './load-task.ts';
import { SLOW_KINDS, type SlowClients, startSlow } from './slow.ts';

/** Of each kind; `slow-clients.ts` measures hundreds, and the delay of the calls of others. */
const CONNECTIONS = 17;
const SECONDS = 2;
const CALLS_PER_SECOND = 100;
/** With the slow readers, fewer calls in flight than a busy machine still admits. */
const CALLERS = 8;
/**
 * Readers that read nothing of 5 MiB each, and their allowed memory, bytes: buffers, and garbage of
 * filling them.
 */
const READERS = 120;
const BYTES_OF_READERS = 200 * 1_048_576;
/**
 * When incomplete heads are cut, milliseconds: their timeout, the interval in which it is checked,
 * and some slack.
 */
const HEAD_DEADLINE_MS = 10_000 + 2_000 + 3_000;
/** How long another reader may take to have its turn before those that are left ask again. */
const NEXT_SERVED_MS = 3_000;
/** How often calls are sent beside slow clients, until half of what is served alone is served. */
const ASKED_BESIDE = 3;
/** A busy machine refuses some that ask at once, and admits more of them each time. */
const ASKED_AT_MOST = 20;

describe('slow clients', () => {
  let target: Target;
  let flood: Flood;
  before(async () => {
    target = targetOf(await startWorld());
    flood = startFlood(undefined);
  });
  after(async () => {
    await flood.stop();
    await target.stop();
  });

  const ask = (): Promise<LoadReport> =>
    flood.run({
      ...{ origin: target.url, path: '/api/resources/cities/invoke', body: '{}' },
      ...{ connections: CALLERS, seconds: SECONDS, shape: { kind: 'open', perSecond: CALLS_PER_SECOND } },
    });

  attack(
    'D1',
    'of all kinds neither delay the calls of others nor fill the memory, and incomplete heads are cut',
    async () => {
      const alone = await ask();
      const startedAt = performance.now();
      const slow: SlowClients[] = [];
      try {
        for (const kind of SLOW_KINDS) slow.push(await startSlow(kind, CONNECTIONS, target.url));
        // On a busy machine the backend fills the buffers of slow readers for seconds.
        for (let asked = 1; ; asked += 1) {
          const { good, busy, wrong, wrongest } = await ask();
          assert.deepEqual({ busy, wrong, wrongest }, { busy: 0, wrong: 0, wrongest: undefined });
          // A call that waited for a slow reader would take seconds.
          if (good > alone.good / 2) break;
          assert.ok(asked < ASKED_BESIDE, `${good} calls, ${alone.good} alone`);
        }
        await target.stillSells();
        const [headers] = slow;
        while ((headers?.connected() ?? 0) > 0) {
          assert.ok(performance.now() - startedAt < HEAD_DEADLINE_MS, 'heads are not cut');
          await delay(100);
        }
      } finally {
        for (const clients of slow) clients.close();
      }
    },
  );

  attack('D1', 'readers that read nothing cost buffers, not whole answers', async () => {
    const before = target.residentBytes();
    const readers: SlowClients[] = [];
    try {
      const arrived = (): number => target.backend.requests.filter(({ url }) => url === '/archive.bin').length;
      for (let served = 0; served < READERS; ) {
        assert.ok(readers.length < ASKED_AT_MOST, `${served} readers were served`);
        readers.push(await startSlow('reading', READERS - served, target.url));
        for (let since = performance.now(); performance.now() - since < NEXT_SERVED_MS; await delay(50)) {
          if (arrived() > served) since = performance.now();
          served = arrived();
          if (served >= READERS) break;
        }
      }
      // Time for the answers of the backend to fill the buffers.
      await ask();
      const grown = target.residentBytes() - before;
      assert.ok(grown < BYTES_OF_READERS, `grew by ${grown} bytes`);
    } finally {
      for (const clients of readers) clients.close();
    }
  });
});
