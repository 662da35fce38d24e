import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { answering, call, GET, lost, notSent, POST, silent, withBackend } from './call.ts';
import { answer, type RawRequest, type Script } from './raw-backend.ts';

/** Answers all but later requests of the first connection, which `then` gets. */
function firstAnswered(then: (socket: Socket, request: RawRequest) => void): Script {
  return (socket, request) => {
    if (request.connection > 1 || request.nth === 1) answer(socket, `connection ${request.connection}`);
    else then(socket, request);
  };
}
const reset = (socket: Socket): void => void socket.resetAndDestroy();

describe('connections to the backend', () => {
  it('are reused: 500 calls in a row need no more than two, and leave no timer', async () => {
    await withBackend(answering, async (connection, backend) => {
      for (let i = 0; i < 500; i += 1) assert.equal((await call(connection)).kind, 'answer');
      assert.ok(backend.accepted() <= 2, `${backend.accepted()} connections`);
      assert.equal(connection.inFlight(), 0);
      const timers = process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout');
      assert.ok(timers.length < 10, `${timers.length} timers`);
    });
  });

  it('are opened anew when the backend closes after every answer', async () => {
    const script: Script = (socket) => {
      answer(socket, 'ok', 'HTTP/1.1 200 OK\r\nconnection: close');
      socket.end();
    };
    await withBackend(script, async (connection, backend) => {
      for (let i = 0; i < 20; i += 1) assert.equal((await call(connection)).kind, 'answer');
      await backend.settledTo(0);
      assert.equal(backend.accepted(), 20);
    });
  });

  it('never outnumber the limit; waiting calls are served in turn', async () => {
    const waiting: Socket[] = [];
    await withBackend(
      (socket) => void waiting.push(socket),
      async (connection, backend) => {
        const calls = Array.from({ length: 6 }, () => call(connection));
        let served = 0;
        while (served < calls.length) {
          while (waiting.length === 0) await backend.nextRequest();
          assert.ok(backend.open() <= 2, `${backend.open()} sockets`);
          for (const socket of waiting.splice(0)) {
            served += 1;
            answer(socket);
          }
        }
        assert.ok((await Promise.all(calls)).every(({ kind }) => kind === 'answer'));
        assert.ok(backend.accepted() <= 2);
      },
      { maxSockets: 2 },
    );
  });

  it('the wait for one counts against the deadline, and then nothing was written', async () => {
    await withBackend(
      silent,
      async (connection, backend) => {
        const first = call(connection, POST, { timeoutMs: 400 });
        await backend.nextRequest();
        const second = await call(connection, POST, { timeoutMs: 100 });
        assert.deepEqual(second, notSent('timeout'));
        assert.equal((await first).kind, 'failed');
        assert.equal(backend.requests.length, 1);
        assert.equal(connection.inFlight(), 0);
      },
      { maxSockets: 1 },
    );
  });

  it('that were reset while idle are replaced without an error for the caller', async () => {
    let peer: Socket | undefined;
    const script: Script = (socket, request) => {
      peer = socket;
      answer(socket, `connection ${request.connection}`);
    };
    await withBackend(script, async (connection, backend) => {
      await call(connection, POST);
      peer?.resetAndDestroy();
      await backend.settledTo(0);
      await pause(20);
      const got = await call(connection, POST);
      assert.equal(got.kind === 'answer' && got.body.toString(), 'connection 2');
    });
  });
});

describe('a reused connection that breaks during a request', () => {
  for (const [rule, then] of [
    ['reset', reset],
    ['closed', (socket: Socket) => void socket.end()],
  ] as const) {
    it(`is tried once more for GET: ${rule}`, async () => {
      await withBackend(firstAnswered(then), async (connection, backend) => {
        await call(connection);
        // The library uses a socket again one turn of the event loop after its last answer.
        await new Promise(setImmediate);
        const got = await call(connection);
        assert.equal(got.kind === 'answer' && got.body.toString(), 'connection 2');
        assert.equal(backend.requests.length, 3);
      });
    });
  }

  for (const [rule, then, request, sent] of [
    ['not for POST', reset, POST, 2],
    ['not after a byte of an answer', (socket: Socket) => void socket.end('H'), GET, 2],
    ['not after garbage', (socket: Socket) => void socket.end('garbage\r\n\r\n'), GET, 2],
  ] as const) {
    it(`is not tried again: ${rule}`, async () => {
      await withBackend(firstAnswered(then), async (connection, backend) => {
        await call(connection);
        await new Promise(setImmediate);
        const got = await call(connection, request);
        assert.deepEqual(got, lost('transport'));
        assert.equal(backend.requests.length, sent);
      });
    });
  }

  it('is tried once more on a new connection, and not a third time', async () => {
    const script: Script = (socket, { connection, nth }) => {
      if (connection === 1 && nth === 1) answer(socket);
      else reset(socket);
    };
    await withBackend(script, async (connection, backend) => {
      await call(connection);
      await new Promise(setImmediate);
      const got = await call(connection);
      assert.deepEqual(got, lost('transport'));
      assert.deepEqual(
        backend.requests.map(({ connection, nth }) => `${connection}.${nth}`),
        ['1.1', '1.2', '2.1'],
      );
    });
  });
});

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
});
