/** What is asked of the image and of the gateway that runs from it: a row each. */

import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type Buyer, createBuyer } from '../../spec/support/buyer.ts';
import { buy } from '../../spec/support/purchase.ts';
import { scrape } from '../../spec/telemetry/scrape.ts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';
import { flood } from '../streams/flood.ts';
import type { Row } from '../streams/row.ts';
import { type Container, LIMIT_MIB, USER } from './container.ts';
import type { Engine } from './engine.ts';
import { foundIn } from './files.ts';
import { type Memory, memoryOf } from './memory.ts';

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
