import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { MAX_WAITING_BYTES } from '../../../src/server/listener/connection.ts';
import type { ListenerParts } from '../../../src/server/listener/listen.ts';
import { openBareListener } from '../http/bare-listener.ts';
import { closeOf, dial, exchange, head, received, statusOf } from '../http/raw.ts';

const PATIENCE_MS = 60_000;
const GET = head(['GET /call HTTP/1.1', 'Host: shop']);
const LAST = head(['GET /last HTTP/1.1', 'Host: shop', 'Connection: close']);
/** Bytes that look like the end of a head, in bodies. */
const LINES = '\r\n\r\nGET /body HTTP/1.1\r\n\r\n';

const PIPELINE = [
  GET,
  `${head(['POST /declared HTTP/1.1', 'Host: shop', `Content-Length: ${LINES.length}`])}${LINES}`,
  `\r\n${GET}`,
  `${head(['POST /chunked HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked'])}${LINES.length.toString(16)}\r\n${LINES}\r\n0\r\n\r\n`,
  LAST,
].join('');
const SERVED = [
  'GET /call 0',
  `POST /declared ${LINES.length}`,
  'GET /call 0',
  `POST /chunked ${LINES.length}`,
  'GET /last 0',
];

/** A listener that answers in a later turn; `most`: how many requests it had at a time. */
async function openSlow() {
  const seen = { served: [] as string[], running: 0, most: 0 };
  const listener = await openBareListener([
    async function answerLater(req, res) {
      seen.running += 1;
      seen.most = Math.max(seen.most, seen.running);
      res.once('close', () => {
        seen.running -= 1;
      });
      let bytes = 0;
      for await (const chunk of req) bytes += (chunk as Buffer).length;
      seen.served.push(`${req.method} ${req.url} ${bytes}`);
      await new Promise((resolve) => setImmediate(resolve));
      res.end();
    },
  ]);
  return { ...listener, seen };
}

describe('requests behind one that runs', () => {
  it('wait as bytes: 64 KiB of them on each of 150 connections do not fill a heap of 115 MB', {
    timeout: PATIENCE_MS,
  }, async () => {
    const execArgv = ['--max-old-space-size=115', '--max-semi-space-size=8'];
    const child = fork(join(import.meta.dirname, 'listener-main.ts'), {
      execArgv,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    try {
      const [url] = (await once(child, 'message')) as [string];
      const bytes = GET.repeat(65_536 / GET.length);
      const sockets = await Promise.all(Array.from({ length: 150 }, () => dial(url)));
      for (const socket of sockets) socket.pause().write(bytes);
      for (let asked = 0; asked < 2; asked += 1) assert.equal(statusOf(await exchange(url, [LAST])), 200);
      assert.equal(child.exitCode ?? child.signalCode, null);
      for (const socket of sockets) socket.destroy();
    } finally {
      child.kill();
    }
  });

  it('are served one at a time and in order, wherever their bytes are divided', { timeout: PATIENCE_MS }, async () => {
    const listener = await openSlow();
    try {
      for (let at = 0; at <= PIPELINE.length; at += 1) {
        listener.seen.served.length = 0;
        const socket = await dial(listener.url);
        socket.setNoDelay(true);
        const text = received(socket);
        socket.write(PIPELINE.slice(0, at));
        await new Promise((resolve) => setImmediate(resolve));
        socket.write(PIPELINE.slice(at));
        await closeOf(socket);
        assert.deepEqual(listener.seen.served, SERVED, `divided at ${at}`);
        assert.equal(text().match(/HTTP\/1\.1 200/g)?.length, SERVED.length);
      }
      assert.equal(listener.seen.most, 1);
    } finally {
      listener.close();
    }
  });

  it('are served also where each byte comes alone', { timeout: PATIENCE_MS }, async () => {
    const listener = await openSlow();
    try {
      const socket = await dial(listener.url);
      socket.setNoDelay(true).resume();
      for (const byte of PIPELINE) {
        socket.write(byte);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await closeOf(socket);
      assert.deepEqual([listener.seen.served, listener.seen.most], [SERVED, 1]);
    } finally {
      listener.close();
    }
  });

  it('may be an upgrade, which has the bytes behind its head', { timeout: PATIENCE_MS }, async () => {
    const listener = await openBareListener([], {
      relay: {
        idleTimeoutMs: 1_000,
        upgrade(_req, socket: Duplex, first) {
          let bytes = first.toString();
          // As one that asks the backend first.
          setImmediate(() =>
            socket.on('data', (more: Buffer) => {
              bytes += more.toString();
              if (bytes.endsWith('more')) socket.end(`taken ${bytes}`);
            }),
          );
        },
      },
    });
    try {
      const upgrade = head(['GET /ws HTTP/1.1', 'Host: shop', 'Connection: Upgrade', 'Upgrade: websocket']);
      const socket = await dial(listener.url);
      const text = received(socket);
      socket.write(`${GET}${GET}${upgrade}frames\r\n\r\nmore`);
      await closeOf(socket);
      assert.match(text(), /taken frames\r\n\r\nmore$/);
    } finally {
      listener.close();
    }
  });
});

const IDLE = head(['GET /idle HTTP/1.1', 'Host: shop']);
const HELD = head(['GET /held HTTP/1.1', 'Host: shop']);

/** A listener whose `/held` runs without end, and what it reported. */
async function openRoom(bounds: Pick<ListenerParts, 'maxConnections' | 'sharesClients'>) {
  const reasons: unknown[] = [];
  const listener = await openBareListener(
    [
      function hold(req, res, next) {
        if (req.url === '/held') res.flushHeaders();
        else next();
      },
    ],
    { ...bounds, onRefused: ({ details }) => reasons.push(details?.['reason']) },
  );
  const { port } = new URL(listener.url);
  /** Resolves with a connection of a client once it is answered or closed. */
  async function open(bytes: string, localAddress = '127.0.0.1'): Promise<Socket> {
    const socket = connect({ host: '127.0.0.1', port: Number(port), localAddress });
    socket.on('error', () => undefined);
    socket.write(bytes);
    await Promise.race([once(socket, 'data'), closeOf(socket)]);
    socket.resume();
    return socket;
  }
  return { ...listener, reasons, open };
}

const stays = async (socket: Socket): Promise<void> => {
  socket.write(IDLE);
  await once(socket, 'data');
};

describe('one connection more than a listener has', () => {
  it('takes the place of the one that is idle for longest', { timeout: PATIENCE_MS }, async () => {
    const room = await openRoom({ maxConnections: () => 4, sharesClients: () => false });
    try {
      const held = await room.open(HELD);
      const first = await room.open(IDLE);
      const second = await room.open(IDLE);
      const third = await room.open(IDLE);
      await stays(first);
      const further = await room.open(IDLE);
      await closeOf(second);
      for (const socket of [first, third, further]) await stays(socket);
      assert.equal(held.destroyed, false);
      assert.deepEqual(room.reasons, []);
    } finally {
      room.close();
    }
  });

  it('is closed where all others have a running call', { timeout: PATIENCE_MS }, async () => {
    const room = await openRoom({ maxConnections: () => 2, sharesClients: () => false });
    try {
      const running = [await room.open(HELD), await room.open(HELD)];
      await closeOf(await room.open(IDLE));
      assert.deepEqual(room.reasons, ['too_many_connections']);
      running[0]?.destroy();
      while ((await room.connections()) > 1) await delay(1);
      await stays(await room.open(IDLE));
      assert.equal(running[1]?.destroyed, false);
    } finally {
      room.close();
    }
  });
});

describe('connections of one client', () => {
  it('leave as many as they take: a further one takes the place of an idle one of the same client', {
    timeout: PATIENCE_MS,
  }, async () => {
    const room = await openRoom({ maxConnections: () => 8 });
    try {
      const own = [];
      for (let opened = 0; opened < 4; opened += 1) own.push(await room.open(IDLE));
      const other = await room.open(IDLE, '127.0.0.2');
      const further = await room.open(IDLE);
      await closeOf(own[0] as Socket);
      for (const socket of [...own.slice(1), other, further]) await stays(socket);
    } finally {
      room.close();
    }
  });

  it('are refused where all of its share have a running call, and others are served', {
    timeout: PATIENCE_MS,
  }, async () => {
    const room = await openRoom({ maxConnections: () => 4 });
    try {
      const running = [await room.open(HELD), await room.open(HELD)];
      await closeOf(await room.open(IDLE));
      assert.deepEqual(room.reasons, ['too_many_connections']);
      await stays(await room.open(IDLE, '127.0.0.2'));
      assert.deepEqual(
        running.map(({ destroyed }) => destroyed),
        [false, false],
      );
    } finally {
      room.close();
    }
  });

  it('close no idle one of another client where they are refused all the same', {
    timeout: PATIENCE_MS,
  }, async () => {
    const room = await openRoom({ maxConnections: () => 4 });
    try {
      for (let opened = 0; opened < 2; opened += 1) await room.open(HELD);
      const others = [await room.open(IDLE, '127.0.0.2'), await room.open(IDLE, '127.0.0.3')];
      await closeOf(await room.open(IDLE));
      assert.deepEqual(room.reasons, ['too_many_connections']);
      for (const other of others) await stays(other);
    } finally {
      room.close();
    }
  });

  it('are not told apart behind a proxy', { timeout: PATIENCE_MS }, async () => {
    const room = await openRoom({ maxConnections: () => 4, sharesClients: () => false });
    try {
      const open = [];
      for (let opened = 0; opened < 4; opened += 1) open.push(await room.open(HELD));
      assert.deepEqual([open.some(({ destroyed }) => destroyed), room.reasons], [false, []]);
    } finally {
      room.close();
    }
  });
});

describe('bytes that wait on the connections of a listener', () => {
  for (const [what, path] of [
    ['answers', '/large'],
    ['streams', '/stream'],
  ] as const)
    it(`of ${what} have a bound: the connections that hold most are cut`, { timeout: PATIENCE_MS }, async () => {
      const large = Buffer.alloc(MAX_WAITING_BYTES / 2);
      const reasons: unknown[] = [];
      const listener = await openBareListener(
        [
          function answer(req, res, next) {
            if (req.url === '/large') res.end(large);
            else if (req.url === '/stream') res.write(large);
            else next();
          },
        ],
        { onRefused: ({ details }) => reasons.push(details?.['reason']) },
      );
      const port = Number(new URL(listener.url).port);
      const open = (bytes: string): Socket => {
        const socket = connect({ host: '127.0.0.1', port });
        socket.on('error', () => undefined).write(bytes);
        return socket;
      };
      try {
        const small = open(IDLE);
        await once(small, 'data');
        const unread = Array.from({ length: 6 }, () => open(head([`GET ${path} HTTP/1.1`, 'Host: shop'])));
        while (reasons.length === 0) await delay(1);
        assert.deepEqual(new Set(reasons), new Set(['unread_bytes']));
        small.write(IDLE);
        await once(small, 'data');
        for (const socket of unread) socket.destroy();
      } finally {
        listener.close();
      }
    });
});

const CALL = head(['POST /call HTTP/1.1', 'Host: shop', 'Content-Length: 0']);
const NO_REQUEST = 'this is no request\r\n\r\n';

/** A listener at which the first call waits; `begin` resolves to what lets it begin. */
async function openWaiting() {
  const begin = Promise.withResolvers<() => void>();
  const listener = await openBareListener([], {
    loadShedder(req, res, goOn) {
      begin.resolve(() => goOn(req, res));
      return 'waits';
    },
  });
  return { ...listener, begin: begin.promise };
}

describe('a call that waits before Express sees it', () => {
  it('is served when it begins, and its connection goes on', async () => {
    const listener = await openWaiting();
    const socket = await dial(listener.url);
    try {
      const text = received(socket);
      socket.write(CALL);
      const begin = await listener.begin;
      assert.deepEqual(listener.served, []);
      const answered = once(socket, 'data');
      begin();
      await answered;
      assert.match(text(), /^HTTP\/1\.1 200 /);
      assert.doesNotMatch(text(), /connection: close/i);
    } finally {
      socket.destroy();
      listener.close();
    }
  });

  it('is answered before what follows it, which is no request and ends the connection', async () => {
    const listener = await openWaiting();
    const socket = await dial(listener.url);
    try {
      const text = received(socket);
      const ended = closeOf(socket);
      socket.write(CALL + NO_REQUEST);
      (await listener.begin)();
      await ended;
      assert.deepEqual(
        [listener.served, text().match(/HTTP\/1\.1 \d+/g)],
        [['POST /call'], ['HTTP/1.1 200', 'HTTP/1.1 400']],
      );
    } finally {
      listener.close();
    }
  });
});
