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
import { build } from 'rolldown';
import { compileBundle } from '../../deploy/bundle/compile.ts';
import { BUNDLE_NAME, bundleOptions } from '../../deploy/bundle/options.ts';
import { instructions } from '../../spec/deploy/dockerfile.ts';
import { terminate } from '../../spec/support/child.ts';
import { freePorts } from '../../spec/support/ports.ts';
import type { Program, Surroundings } from './contestant.ts';
import { cpuNs, residentBytes } from './meter.ts';
import { median } from './numbers.ts';
import type { BenchOptions } from './options.ts';
import { gatewayProgram, PAID_RESOURCE, SOLD_OVER_HTTP, type Sold } from './peers/gateway.ts';
import { startFacilitatorStub } from './stage.ts';

/** How often the port is tried until it listens, milliseconds. */
const POLL_MS = 2;
/** When the memory is read after the start, milliseconds: garbage of the start is collected. */
const IDLE_MS = 2_000;
const DEADLINE_MS = 30_000;
/** Time until SIGKILL follows. */
const STOP_GRACE_MS = 5_000;

/** Goals for the gateway: the start as a share of the bare proxy's, and its memory. */
const GOALS = { startRatio: 1.6, residentMb: 90 };

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

/** How many contestants there are without an earlier gateway. */
export const STARTED = 3;

/** Starts each contestant `rounds` times. @throws Error with the last output of one that failed */
export async function measureStarts(
  { rounds, before }: Pick<BenchOptions, 'rounds' | 'before'>,
  signal: AbortSignal,
  tell: (line: string) => void,
): Promise<readonly Starts[]> {
  const folder = await mkdtemp(join(tmpdir(), 'starts-'));
  await using ends = new AsyncDisposableStack();
  ends.defer(() => rm(folder, { recursive: true, force: true }));
  const facilitator = await startFacilitatorStub();
  ends.defer(() => facilitator.stop());
  const [backendPort = 0] = await freePorts(1);
  const shared = { backendUrl: `http://127.0.0.1:${backendPort}`, facilitatorUrl: facilitator.url, folder };
  tell('building');
  const starters = await contestants(shared, before);
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
  return all;
}

async function contestants(
  shared: Pick<Surroundings, 'backendUrl' | 'facilitatorUrl' | 'folder'>,
  before: string | undefined,
): Promise<readonly Starter[]> {
  const peer = (entry: string) => async (port: number) => ({
    args: [entry],
    env: { PORT: String(port), BACKEND_URL: shared.backendUrl, NODE_ENV: 'production' },
  });
  const { flags, env } = deployed();
  const configured = gatewayProgram('start', SOLD);
  const gateway = (entry: string) => async (port: number, sparePort: number) => {
    const program = await configured({ ...shared, port, sparePort });
    return { args: [...flags, entry, ...program.args.slice(1)], env: { ...program.env, ...env } };
  };
  const bundle = join(shared.folder, 'gateway');
  await build({ ...bundleOptions('src/main.ts', bundle), logLevel: 'silent' });
  await compileBundle(bundle);
  const bundledPeer = join(shared.folder, 'bare');
  await build({
    input: BARE,
    platform: 'node',
    logLevel: 'silent',
    output: { dir: bundledPeer, entryFileNames: 'bare.mjs' },
  });
  return [
    { id: 'bare', title: 'Express + http-proxy-middleware, from node_modules', program: peer(BARE) },
    { id: 'bare-bundled', title: 'the same in one file', program: peer(join(bundledPeer, 'bare.mjs')) },
    { id: 'gateway', title: 'gateway as in the image', program: gateway(join(bundle, BUNDLE_NAME)) },
    ...(before === undefined ? [] : [{ id: 'gateway-before', title: 'gateway, before', program: gateway(before) }]),
  ];
}

/** The flags of Node and the variables that the image sets. */
function deployed(): { readonly flags: readonly string[]; readonly env: Readonly<Record<string, string>> } {
  const all = instructions(join(import.meta.dirname, '../../deploy/Dockerfile'));
  const instruction = (name: string): string => all.findLast((one) => one.name === name)?.value ?? '';
  const [, ...command]: readonly string[] = JSON.parse(instruction('ENTRYPOINT'));
  const variables = instruction('ENV')
    .split(' ')
    .map((text) => text.split('=', 2));
  const env = variables.flatMap(([name = '', value = '']) => (name === 'PATH' ? [] : [[name, value] as const]));
  return { flags: command.slice(0, -1), env: Object.fromEntries(env) };
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

/** A figure of a contestant as a share of the bare proxy's in the same round. */
function shareOfBare(all: readonly Starts[], id: string, figure: 'wallMs' | 'cpuMs'): number {
  const bare = roundsOf(all, 'bare');
  return median(roundsOf(all, id).map((own, round) => own[figure] / (bare[round]?.[figure] ?? Number.NaN)));
}

function roundsOf(all: readonly Starts[], id: string): readonly Start[] {
  return all.find((one) => one.id === id)?.rounds ?? [];
}

/** The table to read: medians, and medians of the ratios of each round. */
export function startTable(all: readonly Starts[]): string {
  const rows = all.map(({ id, title, rounds }) => {
    const middle = (figure: keyof Start): string => median(rounds.map((one) => one[figure])).toFixed(0);
    const ratios = [shareOfBare(all, id, 'wallMs'), shareOfBare(all, id, 'cpuMs')].map((share) => share.toFixed(2));
    const goal = id === 'gateway' ? `<= ${GOALS.startRatio.toFixed(2)}, ${GOALS.residentMb} MB` : '-';
    return [`${id}: ${title}`, middle('wallMs'), middle('cpuMs'), middle('residentMb'), ...ratios, goal];
  });
  const cells = [['contestant', 'start ms', 'CPU ms', 'idle MB', 'start ratio', 'CPU ratio', 'goal'], ...rows];
  const widths = cells[0]?.map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0))) ?? [];
  return cells
    .map((row) =>
      row.map((text, at) => (at === 0 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0))).join('  '),
    )
    .join('\n');
}

/** One JSON line for a history. */
export function startHistory(all: readonly Starts[]): string {
  return JSON.stringify({ suite: 'start', at: new Date().toISOString(), node: process.version, starts: all });
}
