import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { MAX_WAITING_BYTES } from '../../../src/server/listener/connection.ts';
import type { ListenerParts } from '../../../src/server/listener/listen.ts';
import { openBareListener } from '../http/bare-listener.ts';
import { closeOf, head } from '../http/raw.ts';

const PATIENCE_MS = 30_000;
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
