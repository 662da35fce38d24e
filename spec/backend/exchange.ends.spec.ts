import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { createExchange } from '../../src/backend/backend-connection.ts';
import { CONNECT_TIMEOUT_MS } from '../../src/backend/backend-socket.ts';
import { answering, call, GET, LIMITS, lost, notSent, POST, refusingOrigin, silent, withBackend } from './call.ts';
import { openFullListener } from './full-listener.ts';
import { answer, type Script } from './raw-backend.ts';

describe('a backend that cannot be reached', () => {
  it('refuses: nothing was written', async () => {
    const connection = createExchange({ origin: await refusingOrigin() });
    const got = await call(connection, POST);
    assert.deepEqual(got, notSent('unreachable'));
    assert.equal(connection.inFlight(), 0);
    await connection.close();
  });

  it('does not take the connection: given up after the connect deadline, inside the total one', async () => {
    const listener = await openFullListener('127.0.0.1');
    const connection = createExchange({ origin: `http://127.0.0.1:${listener.port}` });
    const startedAt = performance.now();
    const [patient, hurried] = await Promise.all([
      call(connection, POST, { timeoutMs: 10_000 }),
      call(connection, POST, { timeoutMs: 100 }),
    ]);
    const tookMs = performance.now() - startedAt;
    assert.deepEqual(patient, notSent('unreachable'));
    assert.deepEqual(hurried, notSent('timeout'));
    assert.ok(tookMs >= CONNECT_TIMEOUT_MS - 5 && tookMs < CONNECT_TIMEOUT_MS + 500, `took ${tookMs} ms`);
    await connection.close();
    await listener.close();
  });

  it('is a closed exchange too', async () => {
    const connection = createExchange({ origin: 'http://127.0.0.1:9' });
    await connection.close();
    const got = await call(connection);
    assert.deepEqual(got, notSent('unreachable'));
  });
});

describe('closing', () => {
  it('waits for the running exchange and then leaves no socket', async () => {
    let peer: Socket | undefined;
    const script: Script = (socket) => {
      peer = socket;
    };
    await withBackend(script, async (connection, backend) => {
      const running = call(connection);
      await backend.nextRequest();
      const closed = connection.close();
      assert.equal(connection.inFlight(), 1);
      if (peer !== undefined) answer(peer);
      assert.equal((await running).kind, 'answer');
      await closed;
      await backend.settledTo(0);
    });
  });
});

describe('an abort by the caller', () => {
  it('before the call: nothing is sent', async () => {
    await withBackend(silent, async (connection, backend) => {
      const got = await call(connection, GET, { signal: AbortSignal.abort() });
      assert.deepEqual(got, notSent('aborted'));
      assert.equal(backend.accepted(), 0);
      assert.equal(connection.inFlight(), 0);
    });
  });

  it('while the connection is being opened: the request is never written', async () => {
    await withBackend(answering, async (connection, backend) => {
      const leaving = new AbortController();
      const got = call(connection, POST, { signal: leaving.signal });
      leaving.abort();
      assert.deepEqual(await got, notSent('aborted'));
      assert.equal((await call(connection)).kind, 'answer');
      await pause(20);
      assert.deepEqual(
        backend.requests.map(({ head }) => head.split(' ')[0]),
        ['GET'],
      );
    });
  });

  for (const [at, script] of [
    ['head', silent],
    ['body', (socket: Socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello')],
  ] as const) {
    it(`while the ${at} is on its way: the backend's connection ends`, async () => {
      await withBackend(script, async (connection, backend) => {
        const leaving = new AbortController();
        const got = call(connection, GET, { signal: leaving.signal });
        await backend.nextRequest();
        // The bytes of the answer are on the wire; let them arrive.
        for (let turns = 0; turns < 10; turns += 1) await new Promise(setImmediate);
        leaving.abort();
        assert.deepEqual(await got, lost('aborted', at));
        await backend.settledTo(0);
        assert.equal(connection.inFlight(), 0);
      });
    });
  }

  it('after the answer changes nothing', async () => {
    const leaving = new AbortController();
    await withBackend(answering, async (connection) => {
      const { body } = await connection.exchange(GET, { ...LIMITS, signal: leaving.signal });
      await new Promise(setImmediate);
      leaving.abort();
      assert.equal(Buffer.concat(await body.toArray()).toString(), 'ok');
    });
  });
});
