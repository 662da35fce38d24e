/**
 * The suite of starts: from the start of a process until its port takes connections, and the memory
 * that it holds when it is idle. Each round starts every contestant once, forwards and backwards in
 * turn, so that all have the machine in the same state.
 */

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startHostileFacilitator } from '../../spec/support/hostile-facilitator.ts';
import { freePorts } from '../../spec/support/ports.ts';
import { terminate } from '../../tools/local-world/child.ts';
import type { Program, Surroundings } from './contestant.ts';
import type { Measured, MeasuringParts } from './ground.ts';
import { cpuNs, residentBytes } from './meter.ts';
import { median } from './numbers.ts';
import { gatewayProgram, PAID_RESOURCE, SOLD_OVER_HTTP, type Sold } from './peers/gateway.ts';
import type { Entries } from './stage.ts';

const NETWORK = 'eip155:84532';
/** How often the port is tried until it listens, milliseconds. */
const POLL_MS = 2;
/** When the memory is read after the start, milliseconds: garbage of the start is collected. */
const IDLE_MS = 2_000;
const DEADLINE_MS = 30_000;
/** Time until SIGKILL follows. */
const STOP_GRACE_MS = 5_000;

/** One contestant of the suite. */
interface Starter {
  readonly id: string;
  readonly title: string;
  program(port: number, sparePort: number): Promise<Program>;
}

/** What one start took. */
interface Start {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly residentMb: number;
}

/** The starts of one contestant, round by round. */
interface Starts {
  readonly id: string;
  readonly title: string;
  readonly rounds: readonly Start[];
}

/** Express and http-proxy-middleware as npm installs them: the 1.00 of the ratios. */
const BARE = join(import.meta.dirname, 'peers/bare-proxy.mjs');

/** What the gateway of this suite sells: one priced resource over HTTP, one over MCP. */
const PRICED = SOLD_OVER_HTTP.resources[PAID_RESOURCE];
const SOLD: Sold = {
  protocols: { mcp: { enabled: true } },
  resources: { [PAID_RESOURCE]: { ...PRICED }, tool: { ...PRICED, expose: ['mcp'] } },
};

/**
 * Starts each contestant `rounds` times: rows `start` (wall time as a share of the bare proxy's)
 * and `idle-rss` (MB). @throws Error with the last output of one that failed
 */
export async function measureStarts({ rounds, before, entries, signal, tell }: MeasuringParts): Promise<Measured> {
  const folder = await mkdtemp(join(tmpdir(), 'starts-'));
  await using ends = new AsyncDisposableStack();
  ends.defer(() => rm(folder, { recursive: true, force: true }));
  const facilitator = await startHostileFacilitator(NETWORK);
  ends.defer(() => facilitator.stop());
  const [backendPort = 0] = await freePorts(1);
  const shared = { backendUrl: `http://127.0.0.1:${backendPort}`, facilitatorUrl: facilitator.url, folder };
  tell('building');
  const starters = await contestants(shared, entries, before);
  const all = starters.map(({ id, title }) => ({ id, title, rounds: [] as Start[] }));
  for (let round = 0; round < rounds; round += 1) {
    const order = round % 2 === 0 ? starters : starters.toReversed();
    for (const starter of order) {
      signal.throwIfAborted();
      const [port = 0, sparePort = 0] = await freePorts(2);
      const started = await start(await starter.program(port, sparePort), port, signal);
      all.find(({ id }) => id === starter.id)?.rounds.push(started);
    }
    tell(`round ${round + 1} of ${rounds}`);
  }
  process.stdout.write(`${startTable(all)}\n\n`);
  return new Map([
    ['start', { values: sharesOfBare(all, 'gateway', 'wallMs') }],
    ['idle-rss', { values: roundsOf(all, 'gateway').map(({ residentMb }) => residentMb) }],
  ]);
}

async function contestants(
  shared: Pick<Surroundings, 'backendUrl' | 'facilitatorUrl' | 'folder'>,
  entries: Pick<Entries, 'gateway'>,
  before: string | undefined,
): Promise<readonly Starter[]> {
  const bare = async (port: number) => ({
    args: [BARE],
    env: { PORT: String(port), BACKEND_URL: shared.backendUrl, NODE_ENV: 'production' },
  });
  const configured = gatewayProgram('memory', SOLD);
  const gateway = (entry: () => Promise<string>) => (port: number, sparePort: number) =>
    configured({ ...shared, port, sparePort, gatewayEntry: entry, noopEntry: entry, redisUrl: noRedis });
  // Building is no part of a start.
  await entries.gateway();
  return [
    { id: 'bare', title: 'Express + http-proxy-middleware, from node_modules', program: bare },
    { id: 'gateway', title: 'gateway as in the image', program: gateway(entries.gateway) },
    ...(before === undefined
      ? []
      : [{ id: 'gateway-before', title: 'gateway, before', program: gateway(async () => before) }]),
  ];
}

async function noRedis(): Promise<string> {
  throw new Error('starts are measured without Redis');
}

async function start({ args, env }: Program, port: number, signal: AbortSignal): Promise<Start> {
  const began = performance.now();
  // A clean environment: NODE_OPTIONS of the developer's shell must not change what is measured.
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    signal,
  });
  child.on('error', () => undefined);
  let lastWords = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    lastWords = (lastWords + text).slice(-2_000);
  });
  const { pid = 0 } = child;
  try {
    while (!(await takesConnections(port))) {
      if (child.exitCode !== null || performance.now() - began > DEADLINE_MS) throw new Error(`no start: ${lastWords}`);
      await delay(POLL_MS, undefined, { signal });
    }
    const wallMs = performance.now() - began;
    const cpuMs = cpuNs(pid) / 1_000_000;
    await delay(IDLE_MS, undefined, { signal });
    return { wallMs, cpuMs, residentMb: residentBytes(pid) / 1_048_576 };
  } finally {
    await terminate(child, STOP_GRACE_MS);
  }
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** A figure of a contestant as a share of the bare proxy's in the same round, round by round. */
function sharesOfBare(all: readonly Starts[], id: string, figure: 'wallMs' | 'cpuMs'): readonly number[] {
  const bare = roundsOf(all, 'bare');
  return roundsOf(all, id).map((own, round) => own[figure] / (bare[round]?.[figure] ?? Number.NaN));
}

function roundsOf(all: readonly Starts[], id: string): readonly Start[] {
  return all.find((one) => one.id === id)?.rounds ?? [];
}

/** The table to read: medians, and medians of the ratios of each round. */
function startTable(all: readonly Starts[]): string {
  const rows = all.map(({ id, title, rounds }) => {
    const middle = (figure: keyof Start): string => median(rounds.map((one) => one[figure])).toFixed(0);
    const ratios = [sharesOfBare(all, id, 'wallMs'), sharesOfBare(all, id, 'cpuMs')];
    const shares = ratios.map((values) => median(values).toFixed(2));
    return [`${id}: ${title}`, middle('wallMs'), middle('cpuMs'), middle('residentMb'), ...shares];
  });
  const cells = [['contestant', 'start ms', 'CPU ms', 'idle MB', 'start ratio', 'CPU ratio'], ...rows];
  const widths = cells[0]?.map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0))) ?? [];
  return cells
    .map((row) =>
      row.map((text, at) => (at === 0 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0))).join('  '),
    )
    .join('\n');
}
