/** The gateways of a chaos run, which are killed, paused and started again. */

import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { formatUnits } from 'viem';
import { type ConfigObject, CURRENCY, merged, paidOn, writeConfig } from '../../spec/support/config.ts';
import {
  type GatewayProcess,
  type PreparedGateway,
  type PreparedParts,
  prepareGateway,
} from '../../spec/support/gateway-process.ts';
import { freePorts } from '../../spec/support/ports.ts';
import { sampleResources } from '../../spec/support/resources.ts';
import { AFTER, SEALING } from '../../spec/support/settled-after.ts';
import { LOCAL_TOKEN } from '../../src/payments/pricing/networks.ts';
import type { Network } from './networks.ts';

/** What the configuration of the gateways refers to. */
export interface Surroundings {
  readonly networks: readonly Network[];
  readonly backendUrl: string;
  readonly storage: PreparedParts['storage'];
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
  /**
   * Writes that a network is offered or not into its configuration; resolves when its process uses
   * it or has ended. @throws Error where it refuses to
   */
  offer(at: number, offered: boolean): Promise<void>;
  /** Lines of level `error` that its processes wrote, the first ones. */
  readonly complaints: readonly string[];
}

/** The merchant id, for keys of the store. */
export const MERCHANT_ID = 'chaos-shop';
/** The price of every resource on the first network, base units. */
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
const RELOADED = 'config reloaded';
const RELOADS: ReadonlySet<unknown> = new Set([RELOADED, 'config rejected']);

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
  let { config } = prepared;
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
    async offer(at, offered) {
      const gateway = running;
      const before = new Set(gateway?.log);
      config = merged(config, {
        payments: { x402: entriesIn(config).with(at, { ...entriesIn(config)[at], offered }) },
      });
      await writeConfig(`${prepared.configPath}.new`, config);
      await rename(`${prepared.configPath}.new`, prepared.configPath);
      const taken = gateway?.logged((line) => !before.has(line) && RELOADS.has(line['msg']));
      const line = await Promise.race([taken, gateway?.ended.then(() => undefined)]);
      if (line !== undefined && line['msg'] !== RELOADED) throw new Error(`${name}: ${JSON.stringify(line)}`);
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
  const { networks, backendUrl, storage } = parts;
  const worlds = networks.map(({ chain, rpcUrl, facilitatorUrl, payTo }) => ({
    ...{ chain: { ...chain, rpcUrl }, payTo },
    facilitator: { mode: 'remote', url: facilitatorUrl } as const,
  }));
  const [world] = worlds;
  if (world === undefined) throw new Error('a run has a network');
  // A settlement without a verdict ends by what the chain shows.
  const kept = { keepAnswerSeconds: 3_600, payToExclusive: true };
  const entries = worlds.map((one, at) => ({
    ...paidOn(one),
    currency: networks[at]?.currency,
    ...(at === 0 ? kept : {}),
  }));
  const samples = Object.keys(sampleResources(CURRENCY)).map((id) => [id, undefined]);
  return {
    ...world,
    ...{ backendUrl, storage, ports },
    overrides: {
      merchant: { id: MERCHANT_ID, publicBaseUrl },
      payments: { x402: entries.length === 1 ? entries[0] : entries },
      protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
      storage: { eventsMaxLength: EVERYTHING, receiptsMaxLength: EVERYTHING, sealing: SEALING },
      limits: { unpaidWork: { perResource: NO_BUDGET, perNetwork: NO_BUDGET, all: NO_BUDGET } },
      resources: { ...Object.fromEntries(samples), ...resources(pricingOf(networks)) },
    },
  };
}

function entriesIn(config: ConfigObject): readonly object[] {
  return (config['payments'] as { readonly x402: readonly object[] }).x402;
}

function pricingOf(networks: Surroundings['networks']): object {
  const amounts = networks.map(({ currency, units }) => [currency, formatUnits(units, LOCAL_TOKEN.decimals)] as const);
  const [[currency, amount] = []] = amounts;
  return { type: 'fixed', ...(amounts.length === 1 ? { amount, currency } : { amounts: Object.fromEntries(amounts) }) };
}

function resources(pricing: object): Readonly<Record<ResourceId, object>> {
  const resource = (backend: object): ConfigObject => ({ ...sold(backend), pricing });
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

function sold(backend: object): ConfigObject {
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
    expose: ['http', 'mcp', 'a2a', 'origin'],
    payments: ['x402'],
  };
}
