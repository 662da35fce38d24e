/**
 * Paid calls through two gateways on one Redis, beside one gateway and one on SQLite: CPU and
 * memory a call, and what the store keeps. `--seconds N`, `--only NAME`. The bundle that
 * GATEWAY_ENTRY names, else the sources.
 */

import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { freePorts } from '../../spec/support/ports.ts';
import { startRedis } from '../../spec/support/redis.ts';
import { FROM_BACKEND, plainQuestion, type Question } from '../bench/contestant.ts';
import { deployed } from '../bench/deployed.ts';
import { CONNECTIONS, type Load, startLoad } from '../bench/load.ts';
import { cpuNs, requireMeter, residentBytes } from '../bench/meter.ts';
import { ASSET, invocationOf, PAID_RESOURCE, PAYEE, SOLD_OVER_HTTP } from '../bench/peers/gateway.ts';
import { type Running, startProgram } from '../bench/program.ts';

const HOST = '127.0.0.1';
const WARM_UP_SECONDS = 4;
const QUESTION: Question = { ...plainQuestion(invocationOf(PAID_RESOURCE), 200, FROM_BACKEND), pays: true };
/** How long the store may take to be asked for what the last calls left to write, milliseconds. */
const SETTLED_MS = 500;

interface Shared {
  readonly backendUrl: string;
  readonly facilitatorUrl: string;
  readonly seconds: number;
  readonly signal: AbortSignal;
}

interface Gateway {
  readonly origin: string;
  readonly program: Running;
}

/** The store of a topology: its settings, its process, and how large it is. */
interface MeasuredStore {
  readonly settings: object;
  readonly pid: number | undefined;
  bytes(): Promise<number>;
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { seconds: { type: 'string', default: '8' }, only: { type: 'string' } } });
  requireMeter();
  await using ends = new AsyncDisposableStack();
  const { signal } = new AbortController();
  const [backendUrl, facilitatorUrl] = await Promise.all([
    startShared('backend.ts', ends, signal),
    startShared('facilitator-main.ts', ends, signal),
  ]);
  const shared = { backendUrl, facilitatorUrl, seconds: Number(values.seconds), signal };
  const measured: Measured[] = [];
  for (const topology of TOPOLOGIES)
    if (values.only === undefined || values.only === topology.name) measured.push(await measure(topology, shared));
  process.stdout.write(reportOf(measured));
}

async function startShared(file: string, ends: AsyncDisposableStack, signal: AbortSignal): Promise<string> {
  const [port = 0] = await freePorts(1);
  const args = [join(import.meta.dirname, '../bench', file)];
  const program = ends.adopt(startProgram(undefined, { args, env: { PORT: String(port) } }), ({ stop }) => stop());
  const url = `http://${HOST}:${port}`;
  await program.ready(url, signal);
  return url;
}

/** @throws Error for any answer that is not a delivered paid call, and when money moved twice */
async function measure(topology: Topology, shared: Shared): Promise<Measured> {
  await using ends = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'load-'));
  ends.defer(() => rm(folder, { recursive: true, force: true }));
  const store = await openStore(topology, folder, ends);
  const gateways: Gateway[] = [];
  for (let nth = 0; nth < topology.gateways; nth += 1)
    gateways.push(await startGateway(join(folder, `${nth}.json`), { topology, shared, store }, ends));
  const idleBytes = sum(gateways, ({ program }) => residentBytes(program.pid));
  const loads = gateways.map(() => ends.adopt(startLoad(undefined), ({ stop }) => stop()));
  await fire(gateways, loads, WARM_UP_SECONDS, shared.signal);

  const settledBefore = await settlements(shared);
  const before = { gateways: cpuOf(gateways), store: cpuOf(store), bytes: await store.bytes() };
  const startedAt = performance.now();
  const calls = await fire(gateways, loads, shared.seconds, shared.signal);
  const elapsedMs = performance.now() - startedAt;
  await delay(SETTLED_MS);
  const settled = (await settlements(shared)) - settledBefore;
  if (settled !== calls)
    throw new Error(`${topology.name}: ${calls} calls were paid, and ${settled} settlements asked for`);
  return {
    topology,
    calls,
    elapsedMs,
    gatewayUs: (cpuOf(gateways) - before.gateways) / 1_000 / calls,
    storeUs: (cpuOf(store) - before.store) / 1_000 / calls,
    storedBytes: ((await store.bytes()) - before.bytes) / calls,
    idleBytes,
    loadedBytes: sum(gateways, ({ program }) => residentBytes(program.pid)),
  };
}

/** Fires at all gateways at the same time. Resolves to the calls that were paid and delivered. */
async function fire(
  gateways: readonly Gateway[],
  loads: readonly Load[],
  seconds: number,
  signal: AbortSignal,
): Promise<number> {
  const connections = CONNECTIONS / gateways.length;
  const reports = await Promise.all(
    gateways.map(async ({ origin }, nth) =>
      loads[nth]?.fire({ origin, question: QUESTION, connections, seconds }, signal),
    ),
  );
  return reports.reduce((all, report) => all + (report?.requests ?? 0), 0);
}

async function settlements({ facilitatorUrl, signal }: Shared): Promise<number> {
  const counts = (await (await fetch(`${facilitatorUrl}/counts`, { signal })).json()) as { readonly settle: number };
  return counts.settle;
}

async function openStore({ store }: Topology, folder: string, ends: AsyncDisposableStack): Promise<MeasuredStore> {
  if (store === 'sqlite') {
    const path = join(folder, 'store.db');
    const sizeOf = async (file: string): Promise<number> => (await stat(file).catch(() => ({ size: 0 }))).size;
    return { settings: { sqlite: { path } }, pid: undefined, bytes: () => sizeOf(path) };
  }
  const redis = ends.adopt(await startRedis(), (server) => server.stop());
  const client = ends.adopt(new Redis(redis.socketPath), (open) => open.disconnect());
  return {
    settings: { redis: { url: redis.url } },
    pid: redis.pid,
    bytes: async () => Number(/^used_memory_dataset:(\d+)/m.exec(await client.info('memory'))?.[1] ?? 0),
  };
}

async function startGateway(
  configPath: string,
  { topology, shared, store }: { readonly topology: Topology; readonly shared: Shared; readonly store: MeasuredStore },
  ends: AsyncDisposableStack,
): Promise<Gateway> {
  const [port = 0, managementPort = 0] = await freePorts(2);
  const origin = `http://${HOST}:${port}`;
  await writeFile(
    configPath,
    JSON.stringify({
      version: 1,
      merchant: { id: 'load', name: 'Load', publicBaseUrl: 'http://load.example' },
      server: { host: HOST, port },
      management: { host: HOST, port: managementPort },
      backend: { baseUrl: shared.backendUrl },
      storage: { ...store.settings, ...(topology.gateways > 1 ? { replicas: topology.gateways } : {}) },
      payments: {
        x402: {
          network: 'eip155:84532',
          asset: ASSET,
          assetName: 'USDC',
          assetVersion: '2',
          assetDecimals: 6,
          payTo: PAYEE,
          facilitator: { mode: 'remote', url: shared.facilitatorUrl },
        },
      },
      ...SOLD_OVER_HTTP,
    }),
  );
  const { flags, env } = deployed();
  const entry = process.env['GATEWAY_ENTRY'] ?? join(import.meta.dirname, '../../src/main.ts');
  const program = ends.adopt(
    startProgram(undefined, {
      args: [...flags, entry, 'serve', '--config', configPath],
      env: { ...env, GATEWAY_DRAIN_SECONDS: '0' },
    }),
    ({ stop }) => stop(),
  );
  // The management listener opens last.
  await program.ready(`http://${HOST}:${managementPort}/ready`, shared.signal);
  return { origin, program };
}

function cpuOf(of: readonly Gateway[] | MeasuredStore): number {
  if ('pid' in of) return of.pid === undefined ? 0 : cpuNs(of.pid);
  return sum(of, ({ program }) => cpuNs(program.pid));
}

function sum(gateways: readonly Gateway[], of: (gateway: Gateway) => number): number {
  return gateways.reduce((all, gateway) => all + of(gateway), 0);
}

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

/** What one topology needed for a number of paid calls. */
interface Measured {
  readonly topology: Topology;
  readonly calls: number;
  readonly elapsedMs: number;
  /** CPU of all gateways and of the store for one call, microseconds. */
  readonly gatewayUs: number;
  readonly storeUs: number;
  /** What the store grew by for one call, bytes. */
  readonly storedBytes: number;
  /** Memory of all gateways before the load and behind it, bytes. */
  readonly idleBytes: number;
  readonly loadedBytes: number;
}

const COLUMNS = ['topology', 'calls', 'calls/s', 'gateway us', 'store us', 'stored B', 'idle MB', 'loaded MB'] as const;
const MEGABYTE = 1_000_000;
const MICROSECONDS = 1_000_000;

/** The table of a run, and what follows for one shard of the store. */
function reportOf(measured: readonly Measured[]): string {
  const rows = measured.map((one) => [
    one.topology.name,
    String(one.calls),
    String(Math.round((one.calls * 1_000) / one.elapsedMs)),
    String(Math.round(one.gatewayUs)),
    one.topology.store === 'redis' ? String(Math.round(one.storeUs)) : '-',
    String(Math.round(one.storedBytes)),
    String(Math.round(one.idleBytes / MEGABYTE)),
    String(Math.round(one.loadedBytes / MEGABYTE)),
  ]);
  const widths = COLUMNS.map((title, column) =>
    Math.max(...[title, ...rows.map((row) => row[column] ?? '')].map((cell) => cell.length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd();
  const shared = measured.filter(({ topology }) => topology.store === 'redis');
  const dearest = Math.max(0, ...shared.map(({ storeUs }) => storeUs));
  const ceiling =
    dearest === 0 ? [] : ['', `one shard of Redis: at most ${Math.floor(MICROSECONDS / dearest)} paid calls a second`];
  return `${[line(COLUMNS), ...rows.map(line), ...ceiling].join('\n')}\n`;
}

await main();
