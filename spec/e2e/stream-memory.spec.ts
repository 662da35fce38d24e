import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Store } from '../../src/store/documents/store.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { event } from '../payments/ledger/samples.ts';
import type { ConfigObject } from '../support/config.ts';
import { readStream } from '../support/event-stream.ts';
import { type GatewayProcess, prepareGateway } from '../support/gateway-process.ts';
import { startRedis } from '../support/redis.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';

/** What runs, and what a spec needs to talk to it. */
interface Replicas {
  readonly gateways: readonly GatewayProcess[];
  readonly token: string;
  readonly chain: Chain;
  readonly backend: SampleBackend;
  /** A connection of the spec to the store of the gateways. */
  readonly store: Store;
  stop(): Promise<void>;
}

/** Starts `count` of them. `execArgv`: for Node itself. */
async function startReplicas(
  count: number,
  options: { readonly execArgv?: readonly string[]; readonly overrides?: ConfigObject } = {},
): Promise<Replicas> {
  const { execArgv = [], overrides = {} } = options;
  await using ends = new AsyncDisposableStack();
  const directory = await temporaryDirectory(ends, 'acg-replicas-');
  const redis = ends.adopt(await startRedis(), ({ stop }) => stop());
  const chain = ends.adopt(await startChain(), ({ stop }) => stop());
  const backend = ends.adopt(await startSampleBackend(), ({ stop }) => stop());
  const limits = { eventsMaxLength: 10_000, receiptsMaxLength: 100 };
  const opening = openRedisStore({ url: redis.url, merchantId: 'market-shop', limits });
  const store = ends.adopt(await opening, ({ close }) => close());
  const token = randomBytes(24).toString('base64url');
  const storage = { redis: { url: redis.url } };
  const parts = { backendUrl: backend.url, chain, storage, adminToken: token, overrides };
  const gateways = await Promise.all(
    Array.from({ length: count }, async () => {
      const prepared = await prepareGateway(directory, { ...parts, facilitator: { mode: 'local' } });
      return ends.adopt(await prepared.start({ execArgv }), async ({ stop }) => void (await stop()));
    }),
  );
  const started = ends.move();
  return { gateways, token, chain, backend, store, stop: () => started.disposeAsync() };
}

const EVENTS = 100_000;
const WARM_UP = 5_000;
const READERS = 3;
/** The ring must not drop what the readers have not read: it holds 10,000. */
const MOST_AHEAD = 5_000;
const LOOK_EVERY = 20_000;
const LIMIT_BYTES = 8_000_000;
const METER = join(import.meta.dirname, '../support/memory-meter.ts');

let replicas: Replicas;
before(async () => {
  replicas = await startReplicas(1, { execArgv: ['--import', METER] });
});
after(() => replicas?.stop());

let measured = 0;
/** Memory that is left after a collection, bytes. */
async function memory(gateway: GatewayProcess): Promise<number> {
  measured += 1;
  process.kill(gateway.pid, 'SIGUSR2');
  return Number((await gateway.logged(({ meter }) => meter === measured))['bytes']);
}

describe('a client of the event stream that never reads', () => {
  it('costs the process less than 8 MB while 100,000 events pass, and the others see every one', async (t) => {
    const [gateway] = replicas.gateways;
    assert.ok(gateway);
    const { token, store } = replicas;
    const readers = await Promise.all(Array.from({ length: READERS }, () => readStream(gateway.baseUrl, { token })));
    const seen = () => Math.min(...readers.map(({ ids }) => ids().length));
    let written = 0;
    const write = async (upTo: number): Promise<void> => {
      for (; written < upTo; written += 100) {
        await store.feed.append(Array.from({ length: 100 }, (_, i) => event('resource.requested', `n-${written + i}`)));
        for (const reader of readers)
          await reader.until(({ ids }) => ids().length > written - MOST_AHEAD, 'what was written');
      }
      for (const reader of readers) await reader.until(({ ids }) => ids().length >= written, 'all that was written');
    };
    await write(WARM_UP);
    const before = await memory(gateway);

    const { port } = new URL(gateway.baseUrl);
    const idle = connect(Number(port), '127.0.0.1').on('error', () => undefined);
    t.after(() => idle.destroy());
    idle.write(`GET /api/events/stream HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    let most = Number.NEGATIVE_INFINITY;
    for (let passed = LOOK_EVERY; passed <= EVENTS; passed += LOOK_EVERY) {
      await write(WARM_UP + passed);
      most = Math.max(most, (await memory(gateway)) - before);
    }
    t.diagnostic(`memory grew by ${most} bytes at most`);
    assert.ok(most < LIMIT_BYTES, `${most} bytes`);
    const bytes = readers[0]?.text().length ?? 0;
    // The reader gets what the sockets held, and then the end of its connection.
    idle.resume();
    await once(idle, 'close');
    t.diagnostic(`${bytes} bytes a reader, ${idle.bytesRead} to the idle one`);
    assert.ok(idle.bytesRead < bytes - 10_000_000, 'the rest would have exceeded the limit');
    assert.equal(seen(), WARM_UP + EVENTS);
    for (const reader of readers) {
      assert.equal(new Set(reader.ids()).size, WARM_UP + EVENTS);
      assert.ok(!reader.text().includes(': gap'));
    }
  });
});
