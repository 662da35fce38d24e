import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { BackendError, type BackendFailure } from '../../src/backend/exchange.ts';
import { answering, call, GET, LIMITS, withBackend } from './call.ts';
import { answer } from './raw-backend.ts';

const MIB = 1_048_576;
const OK = 'HTTP/1.1 200 OK\r\n';

function failure(reason: BackendFailure): (thrown: unknown) => true {
  return (thrown) => {
    assert.ok(thrown instanceof BackendError);
    assert.equal(thrown.reason, reason);
    return true;
  };
}

describe('the body of an answer', () => {
  it('arrives byte for byte: 5 MB of anything', async () => {
    const bytes = randomBytes(5_000_000);
    await withBackend(
      (socket) => answer(socket, bytes),
      async (connection) => {
        const got = await call(connection, GET, { maxResponseBytes: bytes.length });
        assert.ok(got.kind === 'answer');
        assert.ok(got.body.equals(bytes));
      },
    );
  });

  it('arrives byte for byte: CSV with its media type', async () => {
    const csv = 'city,price\r\n"Rome, centre",1.50\r\nKøbenhavn,2.00\r\n';
    await withBackend(
      (socket) => answer(socket, csv, `${OK}content-type: text/csv; charset=utf-8`),
      async (connection) => {
        const { headers, body } = await connection.exchange(GET, LIMITS);
        assert.equal(headers['content-type'], 'text/csv; charset=utf-8');
        assert.equal(Buffer.concat(await body.toArray()).toString(), csv);
      },
    );
  });

  it('holds the backend back while the reader is slow, and loses nothing', async () => {
    const block = randomBytes(64 * 1_024);
    const blocks = 512;
    let sent = 0;
    const script = (socket: Socket): void => {
      socket.write(`${OK}content-length: ${blocks * block.length}\r\n\r\n`);
      const more = (): void => {
        while (sent < blocks) {
          sent += 1;
          if (!socket.write(block)) return;
        }
      };
      socket.on('drain', more);
      more();
    };
    await withBackend(script, async (connection) => {
      const { body } = await connection.exchange(GET, { timeoutMs: 10_000, maxResponseBytes: 64 * MIB });
      // Without a reader the backend stops once the buffers of both sides and of the kernel are
      // full.
      for (let before = -1; before !== sent; await pause(50)) before = sent;
      assert.ok(sent < blocks / 2, `${sent} of ${blocks} blocks were taken from the backend`);
      assert.ok(body.readableLength <= 2 * 65_536, `${body.readableLength} bytes wait for the reader`);
      const hash = createHash('sha256');
      for await (const chunk of body) hash.update(chunk);
      const expected = createHash('sha256');
      for (let i = 0; i < blocks; i += 1) expected.update(block);
      assert.equal(hash.digest('hex'), expected.digest('hex'));
    });
  });

  const large = (socket: Socket): void => {
    socket.write(`${OK}content-length: ${32 * MIB}\r\n\r\n`);
    socket.write(Buffer.alloc(32 * MIB));
  };

  it('does not count the time in which a slow reader holds the backend back', async () => {
    await withBackend(large, async (connection) => {
      const { body } = await connection.exchange(GET, { timeoutMs: 1_500, maxResponseBytes: 32 * MIB });
      await pause(3_000);
      let size = 0;
      for await (const chunk of body) size += chunk.length;
      assert.equal(size, 32 * MIB);
    });
  });

  it('does not wait for ever for a reader that takes nothing', async () => {
    await withBackend(large, async (connection, backend) => {
      const { body } = await connection.exchange(GET, {
        timeoutMs: 5_000,
        maxResponseBytes: 32 * MIB,
        readerHoldMs: 150,
      });
      await backend.settledTo(0);
      assert.equal(connection.inFlight(), 0);
      await assert.rejects(body.toArray(), failure('timeout'));
    });
  });

  for (const [rule, head] of [
    ['with a length', `${OK}content-length: 9\r\n\r\n`],
    ['in chunks', `${OK}transfer-encoding: chunked\r\n\r\n5\r\n`],
    ['that would end with the connection', `${OK}connection: close\r\n\r\n`],
  ] as const) {
    it(`fails when a reset cuts a body ${rule}`, async () => {
      let peer: Socket | undefined;
      const script = (socket: Socket): void => {
        peer = socket;
        socket.write(`${head}hello`);
      };
      await withBackend(script, async (connection) => {
        const { body } = await connection.exchange(GET, LIMITS);
        const [first] = await once(body, 'data');
        assert.equal(first.toString(), 'hello');
        peer?.resetAndDestroy();
        await assert.rejects(once(body, 'end'), failure('transport'));
      });
    });
  }

  it('reports a failure that came before its reader, after the bytes that arrived', async () => {
    const script = (socket: Socket): void => {
      socket.end(`${OK}transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n`);
    };
    await withBackend(script, async (connection, backend) => {
      const { body } = await connection.exchange(GET, LIMITS);
      await backend.settledTo(0);
      await pause(20);
      const seen: string[] = [];
      body.on('data', (chunk) => {
        seen.push(String(chunk));
        body.pause();
        setImmediate(() => body.resume());
      });
      await assert.rejects(once(body, 'end'), failure('transport'));
      assert.deepEqual(seen, ['he', 'llo']);
    });
  });

  it('frees the socket of a reader that gives up', async () => {
    const script = (socket: Socket): void => {
      socket.write(`${OK}content-length: 900\r\n\r\nhello`);
    };
    await withBackend(script, async (connection, backend) => {
      const { body } = await connection.exchange(GET, LIMITS);
      body.destroy();
      assert.equal(connection.inFlight(), 0);
      await backend.settledTo(0);
      assert.equal(body.errored, null);
    });
  });

  it('that came whole leaves its socket in the pool, read or not', async () => {
    await withBackend(answering, async (connection, backend) => {
      const { body } = await connection.exchange(GET, LIMITS);
      await pause(20);
      body.destroy();
      assert.equal(connection.inFlight(), 0);
      assert.equal((await call(connection)).kind, 'answer');
      assert.equal(backend.accepted(), 1);
    });
  });
});
