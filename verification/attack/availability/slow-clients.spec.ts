import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, before, describe } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startWorld } from '../../../spec/support/world.ts';
import { attack, times } from '../catalogue.ts';
import { type Target, targetOf } from '../target.ts';

/** Of each kind. */
const CONNECTIONS = 17;
/** Calls beside them, and how long a call and a probe may take, milliseconds. */
const CALLS = times(20, 200);
const MAX_BESIDE_MS = 1_000;
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
const BUFFERS_FILL_MS = 2_000;
/** A busy machine refuses some that ask at once, and admits more of them each time. */
const ASKED_AT_MOST = 20;

describe('slow clients', () => {
  let target: Target;
  before(async () => {
    target = targetOf(await startWorld());
  });
  after(async () => {
    await target.stop();
  });

  attack(
    'D1',
    'of all kinds neither delay the calls of others nor fill the memory, and incomplete heads are cut',
    async () => {
      const startedAt = performance.now();
      const slow: SlowClients[] = [];
      try {
        for (const kind of SLOW_KINDS) slow.push(await startSlow(kind, CONNECTIONS, target.url));
        for (let call = 0; call < CALLS; call += 1) {
          const at = performance.now();
          await target.stillSells();
          // The first call may wait while the backend fills the buffers of the slow readers.
          const tookMs = performance.now() - at;
          assert.ok(call === 0 || tookMs < MAX_BESIDE_MS, `${tookMs} ms`);
        }
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
      await delay(BUFFERS_FILL_MS);
      const grown = target.residentBytes() - before;
      assert.ok(grown < BYTES_OF_READERS, `grew by ${grown} bytes`);
    } finally {
      for (const clients of readers) clients.close();
    }
  });
});

/**
 * The three ways of slowhttptest: heads that never end (-H), bodies that never end (-B), answers
 * that are hardly read (-X).
 */
const SLOW_KINDS = ['headers', 'body', 'reading'] as const;
type SlowKind = (typeof SLOW_KINDS)[number];

/** How often a slow client sends or reads, milliseconds. */
const DRIP_MS = 1_000;
/**
 * The answer that a slow reader requests: 5 MiB, more than the buffers of the kernel between it and
 * the gateway take.
 */
const LARGE_ANSWER = '/api/resources/free_archive/invoke';

/** Running slow clients. */
interface SlowClients {
  /** How many still have their connection. */
  connected(): number;
  /** How many could connect. */
  readonly count: number;
  close(): void;
}

/** Opens `count` connections, a few at a time, and keeps all of them busy as slowly as can be. */
async function startSlow(kind: SlowKind, count: number, url: string): Promise<SlowClients> {
  const { hostname, port } = new URL(url);
  const open = new Set<Socket>();
  const timers = new Set<NodeJS.Timeout>();
  const one = async (): Promise<void> => {
    const socket = connect({ host: hostname, port: Number(port) });
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    open.add(socket);
    // The gateway closes the connections of slow clients.
    socket.on('error', () => undefined);
    const timer = setInterval(drip(kind, socket), DRIP_MS);
    timers.add(timer);
    socket.once('close', () => {
      open.delete(socket);
      clearInterval(timer);
    });
  };
  for (let at = 0; at < count; at += 32) await Promise.all(Array.from({ length: Math.min(32, count - at) }, one));
  return {
    connected: () => open.size,
    count,
    close() {
      for (const timer of timers) clearInterval(timer);
      for (const socket of open) socket.destroy();
    },
  };
}

/** Begins, and returns the action of every DRIP_MS. */
function drip(kind: SlowKind, socket: Socket): () => void {
  if (kind === 'headers') {
    socket.resume().write('POST /api/resources/free_echo/invoke HTTP/1.1\r\nhost: shop\r\n');
    return () => socket.write('x-slow: 1\r\n');
  }
  const post = (path: string, length: number): string =>
    `POST ${path} HTTP/1.1\r\nhost: shop\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
  if (kind === 'body') {
    socket.resume().write(`${post('/api/resources/free_echo/invoke', 4_096)}{"a":"`);
    return () => socket.write('x');
  }
  socket.pause().write(`${post(LARGE_ANSWER, 2)}{}`);
  // One read of the stream, at most 64 KiB; then nothing for a while.
  return () => void socket.read(1);
}
