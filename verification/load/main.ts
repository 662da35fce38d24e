/**
 * Paid calls through two gateways on one Redis, beside one gateway and one on SQLite: CPU and
 * memory a call, and what the store keeps. `--seconds N`, `--only NAME`. The bundle that
 * GATEWAY_ENTRY names, else the sources.
 */

import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { startRedis } from '../../spec/support/redis.ts';
import type { Contestant } from '../bench/contestant.ts';
import { CONNECTIONS, type Load, startLoad } from '../bench/load.ts';
import { requireMeter, residentBytes, treeCpuNs } from '../bench/meter.ts';
import { gatewayProgram, paidCall, SOLD_OVER_HTTP } from '../bench/peers/gateway.ts';
import { entriesOfSources, type Started, setStage } from '../bench/stage.ts';

const WARM_UP_SECONDS = 4;
/** How long the store may take to be asked for what the last calls left to write, milliseconds. */
const SETTLED_MS = 500;
const MEGABYTE = 1_000_000;
const MICROSECONDS = 1_000_000;

/** What is started over one store. */
interface Topology {
  readonly name: string;
  /** Gateways with listeners of their own, as pods have. */
  readonly gateways: number;
  readonly store: 'redis' | 'sqlite';
}

const TOPOLOGIES: readonly Topology[] = [
  { name: 'one gateway', gateways: 1, store: 'redis' },
  { name: 'two gateways', gateways: 2, store: 'redis' },
  { name: 'one gateway, SQLite file', gateways: 1, store: 'sqlite' },
];

/** Where gateways keep their records: its process, and how large it is. */
interface MeasuredStore {
  readonly url: string;
  readonly pid: number | undefined;
  bytes(folder: string): Promise<number>;
}

const SQLITE: MeasuredStore = {
  url: '',
  pid: undefined,
  bytes: async (folder) => (await stat(join(folder, 'store.db'))).size,
};

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '8' }, only: { type: 'string' } } });
const seconds = Number(values.seconds);
const { signal } = new AbortController();
requireMeter();
await using ends = new AsyncDisposableStack();
// All programs share the cores, as replicas on one machine do.
const cores = { contestant: undefined, others: undefined };
const stage = await setStage(ends, { cores, signal, entries: entriesOfSources() });
const rows: Record<string, Awaited<ReturnType<typeof measure>>> = {};
for (const topology of TOPOLOGIES)
  if (values.only === undefined || values.only === topology.name) rows[topology.name] = await measure(topology);
console.table(rows);
const dearest = Math.max(0, ...Object.values(rows).map((row) => row['store us']));
if (dearest > 0) console.log(`one shard of Redis: at most ${Math.floor(MICROSECONDS / dearest)} paid calls a second`);

/** @throws Error for any answer that is not a delivered paid call, and when money moved twice */
async function measure(topology: Topology) {
  await using own = new AsyncDisposableStack();
  const store = topology.store === 'redis' ? await openRedis(own) : SQLITE;
  let folder = '';
  const gateways: Started[] = [];
  for (let nth = 0; nth < topology.gateways; nth += 1) {
    const gateway = gatewayOf(topology, nth, store, (path) => {
      folder = path;
    });
    gateways.push(await stage.start(gateway));
  }
  own.defer(async () => void (await Promise.all(gateways.map(({ program }) => program.stop()))));
  const pids = gateways.map(({ program }) => program.pid);
  const idle = memoryOf(pids);
  const loads = gateways.map(() => own.adopt(startLoad(undefined), ({ stop }) => stop()));
  await fire(gateways, loads, WARM_UP_SECONDS);

  const { settle: settledBefore } = await stage.facilitatorCounts();
  const before = { gateways: cpuOf(pids), store: cpuOf([store.pid]), bytes: await store.bytes(folder) };
  const startedAt = performance.now();
  const calls = await fire(gateways, loads, seconds);
  const elapsedMs = performance.now() - startedAt;
  await delay(SETTLED_MS);
  const settled = (await stage.facilitatorCounts()).settle - settledBefore;
  if (settled !== calls)
    throw new Error(`${topology.name}: ${calls} calls were paid, and ${settled} settlements asked for`);
  return {
    calls,
    'calls/s': Math.round((calls * 1_000) / elapsedMs),
    'gateway us': Math.round((cpuOf(pids) - before.gateways) / 1_000 / calls),
    'store us': Math.round((cpuOf([store.pid]) - before.store) / 1_000 / calls),
    'stored B': Math.round(((await store.bytes(folder)) - before.bytes) / calls),
    'idle MB': idle,
    'loaded MB': memoryOf(pids),
  };
}

/** Fires at all gateways at the same time. Resolves to the calls that were paid and delivered. */
async function fire(gateways: readonly Started[], loads: readonly Load[], duration: number): Promise<number> {
  const connections = CONNECTIONS / gateways.length;
  const reports = await Promise.all(
    gateways.map(({ origin, contestant: { question } }, nth) =>
      loads[nth]?.fire({ origin, question, connections, seconds: duration }, signal),
    ),
  );
  return reports.reduce((all, report) => all + (report?.requests ?? 0), 0);
}

/** One of the gateways over a store; tells its folder. */
function gatewayOf(
  { name, gateways, store }: Topology,
  nth: number,
  { url }: MeasuredStore,
  tell: (folder: string) => void,
): Contestant {
  const merchant = { id: 'load', name: 'Load', publicBaseUrl: 'http://load.example' };
  const sold = { ...SOLD_OVER_HTTP, merchant, ...(gateways > 1 && { storage: { replicas: gateways } }) };
  return {
    ...paidCall,
    id: `${name} ${nth}`,
    program(surroundings) {
      tell(surroundings.folder);
      return gatewayProgram(store, sold)({ ...surroundings, redisUrl: async () => url });
    },
  };
}

async function openRedis(own: AsyncDisposableStack): Promise<MeasuredStore> {
  const redis = own.adopt(await startRedis(), (server) => server.stop());
  const client = own.adopt(new Redis(redis.socketPath), (open) => open.disconnect());
  return {
    url: redis.url,
    pid: redis.pid,
    bytes: async () => Number(/^used_memory_dataset:(\d+)/m.exec(await client.info('memory'))?.[1] ?? 0),
  };
}

/** Nanoseconds on a core so far. */
function cpuOf(pids: readonly (number | undefined)[]): number {
  return pids.reduce<number>((all, pid) => all + (pid === undefined ? 0 : treeCpuNs(pid)), 0);
}

function memoryOf(pids: readonly number[]): number {
  return Math.round(pids.reduce((all, pid) => all + residentBytes(pid), 0) / MEGABYTE);
}
