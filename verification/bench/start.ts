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
import type { Program } from './contestant.ts';
import { residentBytes } from './meter.ts';
import { gatewayProgram, PAID_RESOURCE, SOLD_OVER_HTTP, type Sold } from './peers/gateway.ts';
import type { Measured, MeasuringParts } from './stage.ts';

const NETWORK = 'eip155:84532';
/** How often the port is tried until it listens, milliseconds. */
const POLL_MS = 2;
/** When the memory is read after the start, milliseconds: garbage of the start is collected. */
const IDLE_MS = 2_000;
const DEADLINE_MS = 30_000;
/** Time until SIGKILL follows. */
const STOP_GRACE_MS = 5_000;

/** What one start took. */
interface Start {
  readonly wallMs: number;
  readonly residentMb: number;
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
 * Starts bare proxy and gateway `rounds` times: rows `start` (wall time as a share of the bare
 * proxy's in the same round) and `idle-rss` (MB). @throws Error with the last output of one that
 * failed
 */
export async function measureStarts({ rounds, entries, signal, tell }: MeasuringParts): Promise<Measured> {
  const folder = await mkdtemp(join(tmpdir(), 'starts-'));
  await using ends = new AsyncDisposableStack();
  ends.defer(() => rm(folder, { recursive: true, force: true }));
  const facilitator = await startHostileFacilitator(NETWORK);
  ends.defer(() => facilitator.stop());
  const [backendPort = 0] = await freePorts(1);
  const backendUrl = `http://127.0.0.1:${backendPort}`;
  tell('building');
  // Building is no part of a start.
  const entry = await entries.gateway();
  const surroundings = { backendUrl, facilitatorUrl: facilitator.url, folder, gatewayEntry: async () => entry };
  const configured = gatewayProgram('memory', SOLD);
  const startBare = async (): Promise<Start> => {
    const [port = 0] = await freePorts(1);
    const env = { PORT: String(port), BACKEND_URL: backendUrl, NODE_ENV: 'production' };
    return start({ args: [BARE], env }, port, signal);
  };
  const startGateway = async (): Promise<Start> => {
    const [port = 0, sparePort = 0] = await freePorts(2);
    const program = await configured({ ...surroundings, port, sparePort, noopEntry: unwanted, redisUrl: unwanted });
    return start(program, port, signal);
  };
  const shares: number[] = [];
  const residentMb: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    let [bare, own] = round % 2 === 0 ? [await startBare(), undefined] : [undefined, await startGateway()];
    bare ??= await startBare();
    own ??= await startGateway();
    shares.push(own.wallMs / bare.wallMs);
    residentMb.push(own.residentMb);
    tell(`round ${round + 1} of ${rounds}: ${own.wallMs.toFixed(0)} ms, bare proxy ${bare.wallMs.toFixed(0)} ms`);
  }
  return new Map([
    ['start', { values: shares }],
    ['idle-rss', { values: residentMb }],
  ]);
}

async function unwanted(): Promise<string> {
  throw new Error('starts are measured without Redis and without another rail');
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
    await delay(IDLE_MS, undefined, { signal });
    return { wallMs, residentMb: residentBytes(pid) / 1_048_576 };
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
