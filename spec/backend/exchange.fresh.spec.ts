import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type BackendConnection, createExchange } from '../../src/backend/backend-connection.ts';
import { call, GET, POST, withMerchant } from './call.ts';
import { answer, type RawBackend, rawBackend, type Script } from './raw-backend.ts';

async function withFresh(
  script: Script,
  test: (hop: BackendConnection, backend: RawBackend) => Promise<void>,
  maxSockets = 256,
): Promise<void> {
  const backend = await rawBackend(script);
  const hop = createExchange({ origin: backend.origin, reuse: false, maxSockets });
  try {
    await test(hop, backend);
  } finally {
    await hop.close();
    await backend.close();
  }
}

describe('connections that are not reused', () => {
  it('each exchange has one of its own, says so, and leaves none behind', async () => {
    await withFresh(
      (socket) => answer(socket),
      async (hop, backend) => {
        for (let i = 0; i < 20; i += 1) assert.equal((await call(hop, i % 2 === 0 ? POST : GET)).kind, 'answer');
        assert.deepEqual(
          backend.requests.map(({ connection, nth }) => `${connection}.${nth}`),
          Array.from({ length: 20 }, (_, index) => `${index + 1}.1`),
        );
        for (const { head } of backend.requests) assert.match(head, /^connection: close$/im);
        await backend.settledTo(0);
      },
    );
  });

  it('a merchant that gives up its idle connections never makes a POST uncertain', async () => {
    // It says keep-alive, and whatever comes a second time meets a connection that it has given up.
    const script: Script = (socket, { nth }) => {
      if (nth === 1) answer(socket, 'ok', 'HTTP/1.1 200 OK\r\nconnection: keep-alive');
      else socket.resetAndDestroy();
    };
    await withFresh(script, async (hop, backend) => {
      for (let i = 0; i < 50; i += 1) assert.equal((await call(hop, POST)).kind, 'answer', `call ${i}`);
      assert.equal(backend.requests.length, 50);
    });
    await withMerchant(
      script,
      async (reusing) => {
        assert.equal((await call(reusing, POST)).kind, 'answer');
        const second = await call(reusing, POST);
        assert.deepEqual(second, { kind: 'failed', at: 'head', reason: 'transport', requestWritten: true });
      },
      1,
    );
  });

  it('are as many at once as the limit of sockets, and who waits is served in turn', async () => {
    let most = 0;
    await withFresh(
      (socket) => setImmediate(() => answer(socket)),
      async (hop, backend) => {
        const watch = setInterval(() => {
          most = Math.max(most, backend.open());
        }, 1);
        const got = await Promise.all(Array.from({ length: 50 }, () => call(hop, POST)));
        clearInterval(watch);
        assert.ok(got.every(({ kind }) => kind === 'answer'));
        assert.equal(backend.accepted(), 50);
        assert.ok(most <= 2, `${most} connections at once`);
      },
      2,
    );
  });

  it('a refused connection is certain to have brought nothing', async () => {
    const backend = await rawBackend(() => {});
    const { origin } = backend;
    await backend.close();
    const hop = createExchange({ origin, reuse: false });
    try {
      const got = await call(hop, POST);
      assert.deepEqual(got, { kind: 'failed', at: 'head', reason: 'unreachable', requestWritten: false });
    } finally {
      await hop.close();
    }
  });
});
