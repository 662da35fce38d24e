/** What is asked of the image and of the gateway that runs from it: a row each. */

import { existsSync, globSync, lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Buyer, createBuyer } from '../../spec/support/buyer.ts';
import { buy } from '../../spec/support/purchase.ts';
import { scrape } from '../../spec/telemetry/scrape.ts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';
import { flood } from '../streams/flood.ts';
import type { Row } from '../streams/row.ts';
import { type Container, type Engine, LIMIT_MIB, USER } from './container.ts';

const CONNECTIONS = 400;
/** The gateway's own layer: the bundle, what Node compiled of it, and one native library. */
const MOST_MB = 40;
const MB = 1_000_000;
/** A whole start, with an engine that copies its file system first. */
const MOST_START_MS = 10_000;
/** How long a delivery may take to be written, and how often it is looked for, milliseconds. */
const MOST_WRITE_MS = 3_000;
const WRITE_POLL_MS = 50;
/** Without a load balancer to wait for. */
const MOST_STOP_MS = 3_000;

/** What the image says, and what lies in it. */
export async function imageRows(engine: Engine, image: string, base: string): Promise<readonly Row[]> {
  const [{ Config, Healthcheck, RootFS, Size }, under] = [await engine.inspect(image), await engine.inspect(base)];
  const root = (await engine.podman('image', 'mount', image)).trim();
  const unwanted = foundIn(root);
  await engine.podman('image', 'unmount', image);
  const own = RootFS.Layers.length - under.RootFS.Layers.length;
  const megabytes = Math.round((Size - under.Size) / MB);
  const says = `user ${Config.User}, ${Config.StopSignal}, ${Config.Cmd?.join(' ')}, health check ${Healthcheck === undefined ? 'none' : 'there'}`;
  return [
    row('what the image says', says, `user ${USER}:${USER}, SIGTERM, serve, health check there`),
    row('shells, set-id files, files others change', unwanted.slice(0, 3).join('; ') || 'none', 'none'),
    {
      what: 'layers and size over the base',
      ...{ found: `${own} layers, ${megabytes} MB`, goal: `1 layer, at most ${MOST_MB} MB` },
      met: own === 1 && megabytes <= MOST_MB,
    },
  ];
}

/** How it runs, sells, fills its memory and ends. */
export async function runRows(container: Container, chain: ChainAccess, seconds: number): Promise<readonly Row[]> {
  const { baseUrl, pid, healthMs, readyMs } = container;
  return [
    row('rights of the process', rights(pid), `user ${USER}, no capability, no new ones, root read-only`),
    {
      what: 'from the call of the engine to /ready',
      ...{ found: `/health ${healthMs} ms, /ready ${readyMs} ms`, goal: `at most ${MOST_START_MS} ms` },
      met: readyMs <= MOST_START_MS,
    },
    await healthRow('its health check', container),
    memoryRow('memory, idle', memoryOf(pid)),
    row('a paid call', await paidCall(baseUrl, await createBuyer(chain)), '200'),
    row('what its store holds of it', await stored(container), DELIVERED),
    ...(await floodRows(container, 'free_greeting', '200', seconds)),
    ...(await floodRows(container, 'greeting', '402', seconds)),
    await healthRow('its health check after that', container),
    await endRow(container),
  ];
}

/** CONNECTIONS clients that call as often as they are answered. */
async function floodRows(
  { baseUrl, pid }: Container,
  resource: string,
  status: string,
  seconds: number,
): Promise<readonly Row[]> {
  const { statuses } = await flood(`${baseUrl}/api/resources/${resource}/invoke`, CONNECTIONS, seconds, '{}');
  const found = Object.entries(statuses).map(([one, times]) => `${times} times ${one}`);
  return [
    {
      what: `${CONNECTIONS} connections of calls to be answered ${status}`,
      ...{ found: found.join(', '), goal: 'no other answer but 503, the load shed' },
      met: Object.keys(statuses).every((one) => one === status || one === '503') && statuses[status] !== undefined,
    },
    memoryRow('memory, after that', memoryOf(pid)),
  ];
}

async function healthRow(what: string, container: Container): Promise<Row> {
  return row(what, (await container.healthcheck()) ?? 'exit code 0', 'exit code 0');
}

async function endRow(container: Container): Promise<Row> {
  const { code, ms } = await container.stop();
  return {
    what: 'the end after SIGTERM',
    ...{ found: `exit code ${code}, ${ms} ms`, goal: `exit code 0, at most ${MOST_STOP_MS} ms` },
    met: code === 0 && ms <= MOST_STOP_MS,
  };
}

function memoryRow(what: string, { rss, rssPeak, counted, countedPeak, limit, kills }: Memory): Row {
  return {
    what,
    found: `RSS ${rss} MiB (most ${rssPeak}), counted ${counted} MiB (most ${countedPeak}) of ${limit}, ${kills} kills`,
    goal: `limit ${LIMIT_MIB} MiB, no kill`,
    met: limit === LIMIT_MIB && kills === 0,
  };
}

async function paidCall(baseUrl: string, buyer: Buyer): Promise<string> {
  return String((await buy(buyer, baseUrl, 'greeting', '{}')).status);
}

const DELIVERED = '1 payment delivered, none open';

/** What becomes of a payment once its answer is out: its delivery is written after that. */
async function stored({ managementUrl }: Container): Promise<string> {
  for (const deadline = performance.now() + MOST_WRITE_MS; ; await delay(WRITE_POLL_MS)) {
    const series = await scrape(managementUrl);
    const open = series.get('acg_payments_open') ?? 0;
    const delivered = series.get('acg_payments_total{resource="greeting",channel="http",state="delivered"}') ?? 0;
    const found = `${delivered} payment delivered, ${open === 0 ? 'none' : open} open`;
    if (found === DELIVERED || performance.now() > deadline) return found;
  }
}

/** What the kernel lets the process do. */
function rights(pid: number): string {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const field = (name: string): string => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1] ?? 'none';
  const root = /^\S+ \S+ \S+ \S+ \/ (\S+)/m.exec(readFileSync(`/proc/${pid}/mountinfo`, 'utf8'))?.[1] ?? '';
  const capabilities = ['CapEff', 'CapPrm', 'CapBnd'].every((name) => /^0+$/.test(field(name)));
  return [
    `user ${field('Uid')}`,
    capabilities ? 'no capability' : `capabilities ${field('CapBnd')}`,
    field('NoNewPrivs') === '1' ? 'no new ones' : 'new ones',
    root.split(',').includes('ro') ? 'root read-only' : 'root writable',
  ].join(', ');
}

function row(what: string, found: string, goal: string): Row {
  return { what, found, goal, met: found === goal };
}

const SHELLS = /(?:^|\/)(?:a|ba|da|k|mk|z)?sh$|(?:^|\/)(?:busybox|npm|npx|corepack|apt|apt-get|dpkg|curl|wget)$/;
const SET_ID = 0o6000;
const WRITABLE_BY_ALL = 0o002;

/** Names of the files that should not be there, each with why, from the root of an image. */
export function foundIn(root: string): readonly string[] {
  return globSync('**/*', { cwd: root }).flatMap((path) => {
    const file = lstatSync(join(root, path));
    const reasons: string[] = [];
    if (SHELLS.test(path) && !file.isDirectory()) reasons.push('a shell or an installer');
    if (file.isFile() && (file.mode & SET_ID) !== 0) reasons.push('runs with the rights of its owner');
    if (/^app(?:\/|$)/.test(path) && (file.uid !== 0 || (file.mode & WRITABLE_BY_ALL) !== 0))
      reasons.push('not only root may change it');
    return reasons.map((reason) => `${path}: ${reason}`);
  });
}

const CGROUPS = '/sys/fs/cgroup';
const MIB = 1_048_576;

/** MiB of one moment, and of the worst one so far. */
interface Memory {
  /** Resident memory of the gateway's process. */
  readonly rss: number;
  readonly rssPeak: number;
  /** What the limit counts: every process of the container, its tmpfs and cached files. */
  readonly counted: number;
  readonly countedPeak: number;
  readonly limit: number;
  readonly kills: number;
}

/** Files of a memory cgroup, of version 1 or 2. */
interface Cgroup {
  read(name: string): string;
  readonly names: { readonly now: string; readonly peak: string; readonly limit: string; readonly events: string };
}

const VERSION_1 = {
  now: 'memory.usage_in_bytes',
  peak: 'memory.max_usage_in_bytes',
  limit: 'memory.limit_in_bytes',
  events: 'memory.oom_control',
} as const;
const VERSION_2 = {
  now: 'memory.current',
  peak: 'memory.peak',
  limit: 'memory.max',
  events: 'memory.events',
} as const;

/** Of the container whose first process this is. */
function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const cgroup = cgroupOf(readFileSync(`/proc/${pid}/cgroup`, 'utf8'));
  const mib = (name: string): number => Math.round(Number(cgroup.read(name)) / MIB);
  return {
    rss: kilobytes(status, 'VmRSS'),
    rssPeak: kilobytes(status, 'VmHWM'),
    counted: mib(cgroup.names.now),
    countedPeak: mib(cgroup.names.peak),
    limit: mib(cgroup.names.limit),
    kills: Number(/^oom_kill (\d+)$/m.exec(cgroup.read(cgroup.names.events))?.[1] ?? 0),
  };
}

/** Where the memory of a process is counted, from its /proc/PID/cgroup. */
export function memoryFolder(cgroups: string): string {
  const first = /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(\S+)$/m.exec(cgroups)?.[1];
  if (first !== undefined) return join(CGROUPS, 'memory', first);
  return join(CGROUPS, /^0::(\S+)$/m.exec(cgroups)?.[1] ?? '');
}

function cgroupOf(cgroups: string): Cgroup {
  const folder = memoryFolder(cgroups);
  return {
    read: (name) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8').trim() : 'NaN'),
    names: folder.startsWith(join(CGROUPS, 'memory')) ? VERSION_1 : VERSION_2,
  };
}

function kilobytes(status: string, name: string): number {
  return Math.round(Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1_024);
}
