/** What the specs of the operators share: a gateway with the routes, readers, a line to Redis. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { after, before, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { plainExpress } from '../../../src/app/plain-express.ts';
import { GatewayError } from '../../../src/errors.ts';
import type { EventDraft } from '../../../src/events/event.ts';
import { operatorRoutes } from '../../../src/operator/api/routes.ts';
import { type EventStream, openEventStream } from '../../../src/operator/api/stream.ts';
import { errorHandler } from '../../../src/pipeline/middleware/error-handler.ts';
import { identify } from '../../../src/server/http/access-record.ts';
import { clientNetwork } from '../../../src/server/limits/client-address.ts';
import { createListener } from '../../../src/server/listener/listen.ts';
import { createLifecycle, type Lifecycle } from '../../../src/sidecar/lifecycle.ts';
import type { Store } from '../../../src/store/documents/store.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { openRedisStore } from '../../../src/store/redis/open.ts';
import { openSqliteStore } from '../../../src/store/sqlite/open.ts';
import { event } from '../../payments/ledger/samples.ts';
import { readStream, type StreamClient } from '../../support/event-stream.ts';
import { eventually } from '../../support/records.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';

export const TOKEN = 'operator-token-of-the-stream';
export const NEXT_TOKEN = 'operator-token-to-come-next';
/** Small enough that a test can fill it. */
export const RING = 2_000;
/** Redis trims by whole nodes: this many entries more may be left. */
export const RING_SLACK = 100;
/** Equal looks, one a turn of the event loop, after which the sockets are at rest. */
const LOOKS_AT_REST = 400;
const LIMITS = { eventsMaxLength: RING, receiptsMaxLength: 10 };

/** The operator's routes over a store, listening. */
export interface StreamBed {
  readonly url: string;
  readonly store: Store;
  readonly lifecycle: Lifecycle;
  readonly stream: EventStream;
  /** Failures of the store that the hub reported. */
  readonly troubles: readonly unknown[];
  /** A stream with the operator's token; requested again while the store is too busy for it. */
  open(lastEventId?: string): Promise<StreamClient>;
  /** A connection that requests the stream and then never reads; destroyed after the test. */
  openUnread(t: TestContext, lastEventId?: string): Promise<Socket>;
  /** Bytes written to all connections so far. */
  written(): number;
  /** Most bytes of one connection that the system has not taken yet. */
  unsent(): number;
  close(): Promise<void>;
}

export interface BedOptions {
  readonly maxStreams?: number;
  readonly adminTokens?: readonly string[];
}

/** Opens the routes over a store that the caller closes. */
export async function openBed(store: Store, options: BedOptions = {}): Promise<StreamBed> {
  const { maxStreams = 32, adminTokens = [TOKEN, NEXT_TOKEN] } = options;
  const troubles: unknown[] = [];
  const lifecycle = createLifecycle();
  const onTrouble = (cause: unknown): void => void troubles.push(cause);
  const stream = openEventStream({
    feed: store.feed,
    gate: lifecycle,
    maxStreams,
    clientOf: clientNetwork(0),
    onTrouble,
  });
  const app = plainExpress();
  app.use(identify());
  const unpaid = (limit: number) => store.ledger.unpaid(limit);
  app.use(operatorRoutes(adminTokens, { ...store, unpaid, stream: stream.route, written: async () => undefined }));
  app.use(function noRoute() {
    throw new GatewayError('NOT_FOUND');
  });
  app.use(errorHandler(() => undefined));
  const listener = createListener({ app, closing: () => lifecycle.draining(), onRefused: () => undefined });
  const sockets: Socket[] = [];
  listener.server.on('connection', (socket) => void sockets.push(socket));
  const { port } = await listener.listen('127.0.0.1', 0);
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    store,
    lifecycle,
    stream,
    troubles,
    async open(lastEventId) {
      const deadline = performance.now() + PATIENCE_MS;
      for (;;) {
        const client = await readStream(url, { token: TOKEN, ...(lastEventId === undefined ? {} : { lastEventId }) });
        if (client.status === 200 || performance.now() > deadline) return client;
        await client.ended;
      }
    },
    async openUnread(t, lastEventId) {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      t.after(() => socket.destroy());
      const resume = lastEventId === undefined ? '' : `Last-Event-ID: ${lastEventId}\r\n`;
      socket.write(`GET /api/events/stream HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer ${TOKEN}\r\n${resume}\r\n`);
      return socket;
    },
    written: () => sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0),
    unsent: () => Math.max(0, ...sockets.map(({ writableLength }) => writableLength)),
    async close() {
      stream.close();
      listener.destroy();
    },
  };
}

/** The routes over a store, both closed after the test. */
export async function openBedFor(t: TestContext, store: Store, options: BedOptions = {}): Promise<StreamBed> {
  const bed = await openBed(store, options);
  t.after(async () => {
    await bed.close();
    await store.close();
  });
  return bed;
}

/** The routes over an embedded store, both closed after the test. */
export function openEmbeddedBed(t: TestContext, options: BedOptions & { readonly ring?: number } = {}) {
  const { ring = 1_000, ...rest } = options;
  const limits = { eventsMaxLength: ring, receiptsMaxLength: 10 };
  return openBedFor(t, openSqliteStore({ path: ':memory:', limits }), rest);
}

/** Opens an empty store of each engine. */
export function engines(): readonly (readonly [name: string, open: () => Promise<Store>])[] {
  let redis: TestRedis | undefined;
  before(async () => {
    redis = await startRedis({ args: ['--appendonly', 'no'] });
  });
  after(() => redis?.stop());
  return [
    ['sqlite', async () => openSqliteStore({ path: ':memory:', limits: LIMITS })],
    [
      'redis',
      () => openRedisStore({ url: redis?.url ?? assert.fail('no server'), merchantId: randomUUID(), limits: LIMITS }),
    ],
  ];
}

/** Longest wait for a busy store, milliseconds. */
const PATIENCE_MS = 60_000;

/** Asks again while a store does not answer: a busy machine is no outage. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await ask();
    } catch (thrown) {
      if (!(thrown instanceof StoreError) || performance.now() > deadline) throw thrown;
    }
  }
}

/** Appends `count` events, named from 0 on, in batches; resolves to their ids, oldest first. */
export async function append(
  { feed }: Store,
  count: number,
  more: Partial<EventDraft> = {},
): Promise<readonly string[]> {
  const from = await patiently(() => feed.newest());
  const drafts = Array.from({ length: count }, (_, i) => event('resource.requested', `n-${i}`, more));
  const queue = randomUUID();
  for (let at = 0; at < count; at += 100)
    await patiently(() => feed.append(drafts.slice(at, at + 100), { queue, sequence: at + 1 }));
  const { entries } = await patiently(() => feed.after(from, count));
  return entries.map(({ id }) => id);
}

/** Resolves when a number has not changed for a while. */
export async function atRest(read: () => number): Promise<void> {
  for (let last = -1, same = 0; same < LOOKS_AT_REST; await turn()) {
    same = read() === last ? same + 1 : 0;
    last = read();
  }
}

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
