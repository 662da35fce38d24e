/** The gateways of a chaos run, which are killed, paused and started again. */

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { type ConfigObject, CURRENCY, merged } from '../../spec/support/config.ts';
import {
  type GatewayProcess,
  type PreparedGateway,
  type PreparedParts,
  prepareGateway,
} from '../../spec/support/gateway-process.ts';
import { freePorts } from '../../spec/support/ports.ts';
import { sampleResources } from '../../spec/support/resources.ts';
import { AFTER, SEALING } from '../../spec/support/settled-after.ts';
import type { Chain } from '../../tools/local-world/chain.ts';

/** What the configuration of the gateways refers to. */
export interface Surroundings {
  readonly chain: Chain;
  readonly rpcUrl: string;
  readonly facilitatorUrl: string;
  readonly backendUrl: string;
  readonly storage: PreparedParts['storage'];
  readonly payTo: string;
  /** For the configuration files. */
  readonly directory: string;
}

/** A gateway that dies and is started again. */
export interface Post {
  readonly name: string;
  readonly url: string;
  readonly up: boolean;
  /** SIGKILL. Nothing when it is down already. */
  kill(): Promise<void>;
  /** SIGSTOP, until `wake`; nothing when it is down. */
  pause(): void;
  wake(): void;
  /** Its wall clock jumps. Nothing when it is down. */
  jump(): void;
  /** Starts it again; a start that fails is repeated, as a cluster does. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Lines of level `error` that its processes wrote, the first ones. */
  readonly complaints: readonly string[];
}

/** The merchant id, for keys of the store. */
export const MERCHANT_ID = 'chaos-shop';
/** The price of every resource, base units. */
export const PRICE_UNITS = 1_000n;

/**
 * The operations for sale: of half of them the money moves before the backend is called, of the
 * others after it answered. `job` alone may not be repeated, nor `later_job` once it is paid.
 */
export const RESOURCES = ['report', 'order', 'job', 'later_report', 'later_order', 'later_job'] as const;
export type ResourceId = (typeof RESOURCES)[number];

/** The first part of the path of each at the backend. */
export const PATHS: Readonly<Record<ResourceId, string>> = {
  report: 'reports',
  order: 'orders',
  job: 'jobs',
  later_report: 'later-reports',
  later_order: 'later-orders',
  later_job: 'later-jobs',
};

/** Whether the money moves after the backend answered. */
export function isSettledAfter(resource: ResourceId): boolean {
  return resource.startsWith('later_');
}

/** Whether the backend may get a request twice. */
export function isRepeatable(resource: ResourceId): boolean {
  return resource !== 'job' && resource !== 'later_job';
}

const BACKEND_TIMEOUT_MS = 1_000;
/** Calls that may be unpaid at the same time: no buyer of a run is held up by others. */
const NO_BUDGET = 100_000;
const EVERYTHING = 1_000_000;
const ERROR_LEVEL = 50;
const MOST_COMPLAINTS = 20;
const START_AGAIN_MS = 200;
const JUMPING_CLOCK = ['--import', pathToFileURL(join(import.meta.dirname, 'jumping-clock.ts')).href];
const STARTS = 20;

/** Starts the gateways, all over one store. */
export async function openFleet(count: number, parts: Surroundings): Promise<readonly Post[]> {
  const ports = await freePorts(2 * count);
  const publicBaseUrl = `http://127.0.0.1:${ports[0]}`;
  const posts = await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const [agents = 0, management = 0] = ports.slice(2 * at);
      const settings = configuration(parts, { agents, management }, publicBaseUrl);
      return openPost(`gateway-${at + 1}`, await prepareGateway(parts.directory, settings));
    }),
  );
  await Promise.all(posts.map((post) => post.start()));
  return posts;
}

function openPost(name: string, prepared: PreparedGateway): Post {
  let running: GatewayProcess | undefined;
  let up = false;
  const complaints: string[] = [];
  const bury = (): void => {
    up = false;
    for (const line of running?.log ?? [])
      if (Number(line['level']) >= ERROR_LEVEL && complaints.length < MOST_COMPLAINTS)
        complaints.push(`${name}: ${JSON.stringify(line)}`);
    running = undefined;
  };
  return {
    name,
    url: prepared.baseUrl,
    get up() {
      return up;
    },
    complaints,
    async kill() {
      const dying = running;
      up = false;
      await dying?.kill();
      bury();
    },
    pause: () => signal(running, 'SIGSTOP'),
    wake: () => signal(running, 'SIGCONT'),
    // A process that is starting has no handler yet and would end.
    jump: () => signal(up ? running : undefined, 'SIGUSR2'),
    async start() {
      for (let left = STARTS; !up; left -= 1) {
        try {
          running = await prepared.start({ execArgv: JUMPING_CLOCK });
          up = true;
        } catch (error) {
          if (left <= 1) throw error;
          await delay(START_AGAIN_MS);
        }
      }
    },
    async stop() {
      await running?.stop();
      bury();
    },
  };
}

function signal(gateway: GatewayProcess | undefined, name: 'SIGSTOP' | 'SIGCONT' | 'SIGUSR2'): void {
  try {
    if (gateway !== undefined) process.kill(gateway.pid, name);
  } catch {
    // It was killed meanwhile.
  }
}

function configuration(
  parts: Surroundings,
  ports: { agents: number; management: number },
  publicBaseUrl: string,
): PreparedParts {
  const { chain, rpcUrl, facilitatorUrl, backendUrl, storage, payTo } = parts;
  const samples = Object.keys(sampleResources(CURRENCY)).map((id) => [id, undefined]);
  return {
    backendUrl: backendUrl,
    chain: { ...chain, rpcUrl },
    storage,
    facilitator: { mode: 'remote', url: facilitatorUrl },
    ports,
    payTo,
    overrides: {
      merchant: { id: MERCHANT_ID, publicBaseUrl },
      // A settlement without a verdict ends by what the chain shows.
      payments: { x402: { keepAnswerSeconds: 3_600, payToExclusive: true } },
      protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
      storage: { eventsMaxLength: EVERYTHING, receiptsMaxLength: EVERYTHING, sealing: SEALING },
      limits: { unpaidWork: { perResource: NO_BUDGET, perNetwork: NO_BUDGET, all: NO_BUDGET } },
      resources: { ...Object.fromEntries(samples), ...resources() },
    },
  };
}

function resources(): Readonly<Record<ResourceId, object>> {
  const report = (id: ResourceId) => resource({ method: 'GET', path: `/${PATHS[id]}/{input}` });
  const order = (id: ResourceId) => resource({ method: 'POST', path: `/${PATHS[id]}`, idempotent: true });
  const job = (id: ResourceId) => resource({ method: 'POST', path: `/${PATHS[id]}` });
  return {
    ...{ report: report('report'), order: order('order'), job: job('job') },
    later_report: merged(report('later_report'), AFTER),
    later_order: merged(order('later_order'), AFTER),
    later_job: merged(job('later_job'), AFTER),
  };
}

function resource(backend: object): ConfigObject {
  return {
    name: 'Chaos',
    description: 'A resource whose answer names the call it belongs to',
    inputSchema: {
      type: 'object',
      properties: { input: { type: 'string', minLength: 1, maxLength: 64 } },
      required: ['input'],
      additionalProperties: false,
    },
    backend: { ...backend, timeoutMs: BACKEND_TIMEOUT_MS },
    pricing: { type: 'fixed', amount: '0.001', currency: CURRENCY },
    expose: ['http', 'mcp', 'a2a', 'origin'],
    payments: ['x402'],
  };
}
