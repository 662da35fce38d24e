import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createExchange } from '../../src/backend/backend-connection.ts';
import { answering, call, GET, lost, notSent, POST, refusingOrigin, withBackend } from './call.ts';
import { answer, type Script } from './raw-backend.ts';

const fresh = { reuse: false };

describe('connections that are not reused', () => {
  it('are one for each exchange, which sends Connection: close and leaves none open', async () => {
    await withBackend(
      answering,
      async (connection, backend) => {
        for (let i = 0; i < 20; i += 1) assert.equal((await call(connection, i % 2 === 0 ? POST : GET)).kind, 'answer');
        assert.deepEqual(
          backend.requests.map(({ connection, nth }) => `${connection}.${nth}`),
          Array.from({ length: 20 }, (_, index) => `${index + 1}.1`),
        );
        for (const { head } of backend.requests) assert.match(head, /^connection: close$/im);
        await backend.settledTo(0);
      },
      fresh,
    );
  });

  it('a backend that gives up its idle connections makes no POST uncertain', async () => {
    // It answers with keep-alive and resets the connection at its second request.
    const script: Script = (socket, { nth }) => {
      if (nth === 1) answer(socket, 'ok', 'HTTP/1.1 200 OK\r\nconnection: keep-alive');
      else socket.resetAndDestroy();
    };
    await withBackend(
      script,
      async (connection, backend) => {
        for (let i = 0; i < 50; i += 1) assert.equal((await call(connection, POST)).kind, 'answer', `call ${i}`);
        assert.equal(backend.requests.length, 50);
      },
      fresh,
    );
    await withBackend(
      script,
      async (reusing) => {
        assert.equal((await call(reusing, POST)).kind, 'answer');
        const second = await call(reusing, POST);
        assert.deepEqual(second, lost('transport'));
      },
      { maxSockets: 1 },
    );
  });

  it('are as many at once as the limit of sockets; waiting calls are served in turn', async () => {
    let most = 0;
    await withBackend(
      (socket) => setImmediate(() => answer(socket)),
      async (connection, backend) => {
        const watch = setInterval(() => {
          most = Math.max(most, backend.open());
        }, 1);
        const got = await Promise.all(Array.from({ length: 50 }, () => call(connection, POST)));
        clearInterval(watch);
        assert.ok(got.every(({ kind }) => kind === 'answer'));
        assert.equal(backend.accepted(), 50);
        assert.ok(most <= 2, `${most} connections at once`);
      },
      { ...fresh, maxSockets: 2 },
    );
  });

  it('a refused connection certainly sent nothing', async () => {
    const connection = createExchange({ origin: await refusingOrigin(), reuse: false });
    try {
      const got = await call(connection, POST);
      assert.deepEqual(got, notSent('unreachable'));
    } finally {
      await connection.close();
    }
  });
});
