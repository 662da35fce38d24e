import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { type BackendConnection, createExchange } from '../../src/backend/backend-connection.ts';
import type { BackendAnswer, BackendError } from '../../src/backend/backend-exchange.ts';
import { FAIR_BYTES_A_MS, HOLD_GRACE_MS, SlowReader } from '../../src/backend/slow-readers.ts';

/** More than the buffers of kernel and gateway take together. */
const LARGE = Buffer.alloc(16 * 1_048_576);
const SOCKETS = 2;

describe('answers that their readers hold back', () => {
  let server: Server;
  let origin: string;
  let connection: BackendConnection;
  before(async () => {
    server = createServer((request, response) => {
      response.end(request.url === '/large' ? LARGE : '{}');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    connection = createExchange({ origin, maxSockets: SOCKETS });
  });
  afterEach(() => connection.abort());

  const ask = (path: string, free: boolean): Promise<BackendAnswer> => {
    const limits = { timeoutMs: 5_000, maxResponseBytes: LARGE.length };
    const signal = free ? { signal: new AbortController().signal } : {};
    return connection.exchange({ method: 'GET', path, headers: {}, body: undefined }, { ...limits, ...signal });
  };
  /** A large answer that is not read, and how it fails. */
  const unread = async (
    free: boolean,
  ): Promise<{ readonly body: BackendAnswer['body']; readonly failed: () => string | undefined }> => {
    const { body } = await ask('/large', free);
    let reason: string | undefined;
    body.once('error', (error: BackendError) => {
      reason = error.reason;
    });
    // One piece, like a reader that begins and then stops.
    await once(body, 'readable');
    return { body, failed: () => reason };
  };

  it('keep their sockets as long as no exchange waits for one', async () => {
    const held = [await unread(true), await unread(true)];
    await new Promise((resolve) => setTimeout(resolve, 2 * HOLD_GRACE_MS));
    assert.deepEqual(
      held.map(({ failed }) => failed()),
      [undefined, undefined],
    );
  });

  it('give them up to waiting exchanges, the one held back the longest first', async () => {
    const held = [await unread(true), await unread(true)];
    const answer = await ask('/small', true);
    answer.body.resume();
    assert.deepEqual(
      held.map(({ failed }) => failed()),
      ['timeout', undefined],
    );
  });

  it('keep them when they were paid for', async () => {
    const paid = await unread(false);
    const free = await unread(true);
    (await ask('/small', true)).body.resume();
    assert.deepEqual([paid.failed(), free.failed()], [undefined, 'timeout']);
  });

  it('are not given up when their reader continues', async () => {
    const reading = await unread(true);
    const stopped = await unread(true);
    let bytes = 0;
    reading.body.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    const waiting = ask('/small', true);
    await once(reading.body, 'end');
    (await waiting).body.resume();
    assert.equal(bytes, LARGE.length);
    assert.equal(reading.failed(), undefined);
    stopped.body.destroy();
  });
});

describe('how far behind a reader is', () => {
  type Move = readonly [takesBytes: number, thenHoldsMs: number];
  const CASES: readonly (readonly [title: string, behindMs: number, ...moves: Move[]])[] = [
    ['the whole time in which it takes nothing', 100, [0, 100]],
    ['nothing, when it took enough bytes for the time', 0, [0, 100], [100 * FAIR_BYTES_A_MS, 0]],
    ['what is left of it', 60, [0, 100], [40 * FAIR_BYTES_A_MS, 0]],
    ['no less for bytes that it took long before', 70, [1_000_000 * FAIR_BYTES_A_MS, 70]],
    ['more with every piece that is too small', 298, [0, 100], [FAIR_BYTES_A_MS, 100], [FAIR_BYTES_A_MS, 100]],
  ];
  for (const [title, behindMs, ...moves] of CASES)
    it(title, () => {
      const reader = new SlowReader(() => undefined);
      let now = 0;
      let received = 0;
      for (const [bytes, ms] of moves) {
        received += bytes;
        reader.hold(received, now);
        now += ms;
        reader.release(now);
      }
      assert.equal(reader.behindMs(now + 1_000), behindMs);
    });
});
