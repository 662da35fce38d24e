import { randomUUID } from 'node:crypto';
import { after, before, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import type { Store } from '../../../src/store/documents/store.ts';
import { openRedisStore } from '../../../src/store/redis/open.ts';
import type { StreamClient } from '../../support/event-stream.ts';
import { eventually } from '../../support/records.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { openBedFor, RING, type StreamBed } from './stream-bed.ts';

const LIMITS = { eventsMaxLength: RING, receiptsMaxLength: 10 };

/** Routes over a store that reaches Redis through a line. */
export interface LineBed extends StreamBed {
  readonly line: TcpProxy;
  /** A second store that needs no line, as another replica has. */
  readonly other: Store;
  /** The key of the ring. */
  readonly key: string;
}

/** A server of this test file that loses nothing when it is killed, and routes over it. */
export function lineBeds() {
  let running: { readonly server: TestRedis; readonly admin: Redis } | undefined;
  before(async () => {
    const server = await startRedis({ args: ['--appendfsync', 'always'] });
    const admin = new Redis({ path: server.socketPath });
    admin.on('error', () => undefined);
    running = { server, admin };
  });
  after(async () => {
    running?.admin.disconnect();
    await running?.server.stop();
  });
  const ready = () => {
    if (running === undefined) throw new Error('not started');
    return running;
  };
  return {
    server: () => ready().server,
    /** A connection of the test's own. */
    admin: () => ready().admin,
    async bed(t: TestContext): Promise<LineBed> {
      const { url, socketPath } = ready().server;
      const merchantId = randomUUID();
      const line = await startTcpProxy({ path: socketPath });
      const store = await openRedisStore({ url: `redis://127.0.0.1:${line.port}`, merchantId, limits: LIMITS });
      const other = await openRedisStore({ url, merchantId, limits: LIMITS });
      const opened = await openBedFor(t, store);
      t.after(async () => {
        await other.close();
        await line.stop();
      });
      return { ...opened, line, other, key: `{acg:${merchantId}}:ev` };
    },
  };
}

/** Resolves when a store answers again. */
export async function recovered(store: Store): Promise<void> {
  await eventually(async () => ((await store.check()).status === 'ok' ? true : undefined), 'the store');
}

/** What a client has received after the opening: `gap` and ids. */
export function received(client: StreamClient): readonly string[] {
  return [...client.text().matchAll(/^(?:: (gap)|id: (.*))$/gm)].map(([, gap, id]) => gap ?? id ?? '');
}
