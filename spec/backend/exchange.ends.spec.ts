import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { createExchange } from '../../src/backend/backend-connection.ts';
import { CONNECT_TIMEOUT_MS } from '../../src/backend/backend-socket.ts';
import { call, GET, LIMITS, POST, withMerchant } from './call.ts';
import { answer, type Script } from './raw-backend.ts';

describe('a merchant that cannot be reached', () => {
  it('refuses: nothing was written', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    assert.ok(address !== null && typeof address === 'object');
    server.close();
    await once(server, 'close');
    const hop = createExchange({ origin: `http://127.0.0.1:${address.port}` });
    const got = await call(hop, POST);
    assert.deepEqual(got, { kind: 'failed', at: 'head', reason: 'unreachable', requestWritten: false });
    assert.equal(hop.inFlight(), 0);
    await hop.close();
  });

  it('does not take the connection: given up after the connect deadline, inside the total one', async () => {
    await withUnacceptingListener(async (origin) => {
      const hop = createExchange({ origin });
      const startedAt = performance.now();
      const [patient, hurried] = await Promise.all([
        call(hop, POST, { timeoutMs: 10_000 }),
        call(hop, POST, { timeoutMs: 100 }),
      ]);
      const tookMs = performance.now() - startedAt;
      assert.deepEqual(patient, { kind: 'failed', at: 'head', reason: 'unreachable', requestWritten: false });
      assert.deepEqual(hurried, { kind: 'failed', at: 'head', reason: 'timeout', requestWritten: false });
      assert.ok(tookMs >= CONNECT_TIMEOUT_MS - 5 && tookMs < CONNECT_TIMEOUT_MS + 500, `took ${tookMs} ms`);
      await hop.close();
    });
  });

  it('is a closed exchange too', async () => {
    const hop = createExchange({ origin: 'http://127.0.0.1:9' });
    await hop.close();
    const got = await call(hop);
    assert.deepEqual(got, { kind: 'failed', at: 'head', reason: 'unreachable', requestWritten: false });
  });
});

describe('closing', () => {
  it('waits for the running exchange and then leaves no socket', async () => {
    let merchant: Socket | undefined;
    const script: Script = (socket) => {
      merchant = socket;
    };
    await withMerchant(script, async (hop, backend) => {
      const running = call(hop);
      await backend.nextRequest();
      const closed = hop.close();
      assert.equal(hop.inFlight(), 1);
      if (merchant !== undefined) answer(merchant);
      assert.equal((await running).kind, 'answer');
      await closed;
      await backend.settledTo(0);
    });
  });
});

describe('an abort by the caller', () => {
  it('before the call: nothing is sent', async () => {
    await withMerchant(
      () => {},
      async (hop, backend) => {
        const got = await call(hop, GET, { signal: AbortSignal.abort() });
        assert.deepEqual(got, { kind: 'failed', at: 'head', reason: 'aborted', requestWritten: false });
        assert.equal(backend.accepted(), 0);
        assert.equal(hop.inFlight(), 0);
      },
    );
  });

  it('while the connection is being opened: the request is never written', async () => {
    await withMerchant(
      (socket) => answer(socket),
      async (hop, backend) => {
        const leaving = new AbortController();
        const got = call(hop, POST, { signal: leaving.signal });
        leaving.abort();
        assert.deepEqual(await got, { kind: 'failed', at: 'head', reason: 'aborted', requestWritten: false });
        assert.equal((await call(hop)).kind, 'answer');
        await pause(20);
        assert.deepEqual(
          backend.requests.map(({ head }) => head.split(' ')[0]),
          ['GET'],
        );
      },
    );
  });

  for (const [at, script] of [
    ['head', () => {}],
    ['body', (socket: Socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello')],
  ] as const) {
    it(`while the ${at} is on its way: the merchant's connection ends`, async () => {
      await withMerchant(script, async (hop, backend) => {
        const leaving = new AbortController();
        const got = call(hop, GET, { signal: leaving.signal });
        await backend.nextRequest();
        // The bytes of the answer are on the wire; let them arrive.
        for (let turns = 0; turns < 10; turns += 1) await new Promise(setImmediate);
        leaving.abort();
        assert.deepEqual(await got, { kind: 'failed', at, reason: 'aborted', requestWritten: true });
        await backend.settledTo(0);
        assert.equal(hop.inFlight(), 0);
      });
    });
  }

  it('after the answer changes nothing', async () => {
    const leaving = new AbortController();
    await withMerchant(
      (socket) => answer(socket),
      async (hop) => {
        const { body } = await hop.exchange(GET, { ...LIMITS, signal: leaving.signal });
        await new Promise(setImmediate);
        leaving.abort();
        assert.equal(Buffer.concat(await body.toArray()).toString(), 'ok');
      },
    );
  });
});

/**
 * A listener that accepts nothing and whose queue is full: the kernel ignores further connections,
 * as a dead host would.
 */
async function withUnacceptingListener(test: (origin: string) => Promise<void>): Promise<void> {
  const source = `
    const { parentPort } = require('node:worker_threads');
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const worker = new Worker(source, { eval: true });
  const [port] = await once(worker, 'message');
  // A backlog of 1 holds two connections.
  const fillers = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
  try {
    await Promise.all(fillers.map((filler) => once(filler, 'connect')));
    await test(`http://127.0.0.1:${port}`);
  } finally {
    for (const filler of fillers) filler.on('error', () => {}).destroy();
    await worker.terminate();
  }
}
