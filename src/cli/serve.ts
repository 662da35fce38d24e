/** `acg serve`: opens store, rail and listeners, runs until a signal, drains and closes. */

import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { createGateway, type Gateway } from '../app/gateway.ts';
import { openTracing } from '../app/open-tracing.ts';
import { routeWarnings } from '../app/route-warnings.ts';
import { longestTimeoutMs } from '../checkouts/settings.ts';
import { loadConfig } from '../config/load.ts';
import { secretsOf } from '../config/secrets.ts';
import { adaptersSummary, storeLossSummary } from '../config/summary.ts';
import { configWarnings } from '../config/warnings.ts';
import { createRail } from '../payments/x402/create-rail.ts';
import { ProblemList } from '../problems/problem.ts';
import { connectionsFor, createListener, type Listener } from '../server/listener/listen.ts';
import { openStore } from '../store/open.ts';
import { createLog, type Log, refusalLog } from '../telemetry/log/log.ts';
import { collectorFrom } from '../telemetry/traces/collector.ts';
import { collectStart } from './collect-start.ts';

/** How long new calls are served after the drain began, unless GATEWAY_DRAIN_SECONDS is set. */
const DEFAULT_DRAIN_SECONDS = 5;
const MAX_DRAIN_SECONDS = 600;
const LEVELS = [...Object.values(pino.levels.labels), 'silent'];
/** How long running calls may take after the listener closed, milliseconds. */
const FINISH_MS = 30_000;
/** What a checkout may take beside its wait for the backend, milliseconds. */
const CHECKOUT_SPARE_MS = 5_000;

/** Returned by a closer whose part may keep the process alive, as an exporter without collector. */
const MAY_LINGER = Symbol('may linger');

/** Error codes of the system for an address, and the setting that causes each. */
const FAULTS: Readonly<Record<string, readonly [setting: 'host' | 'port', why: string]>> = {
  EADDRINUSE: ['port', 'is taken by another process'],
  EACCES: ['port', 'may not be opened by this user'],
  EADDRNOTAVAIL: ['host', 'is no address of this machine'],
};

/** Closers, in the order of opening. */
type Opened = (() => unknown)[];

interface Openers {
  readonly openStore: typeof openStore;
  readonly createRail: typeof createRail;
}

/**
 * Runs the gateway until SIGTERM or SIGINT. A second signal ends it at once.
 * @param openers Open store and rail; a test build that must fail visibly brings its own.
 */
export async function serve(
  args: { readonly config?: string },
  openers: Openers = { openStore, createRail },
): Promise<void> {
  const { config, settings } = configured(args);
  const secrets = [...secretsOf(config), ...(collectorFrom(process.env)?.secrets ?? [])];
  const log = createLog(settings.logLevel, secrets);
  for (const warning of [...configWarnings(config), ...routeWarnings(config)]) log.warn(warning);
  const opened: Opened = [];
  stayOnHangUp(log);
  let drain: () => Promise<void>;
  try {
    drain = await open(config, settings.drainSeconds, log, opened, openers);
  } catch (error) {
    await closed(opened, log);
    notStarted(log, error);
    throw error;
  }
  try {
    await signalled();
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1));
    await drain();
  } finally {
    await closed(opened, log);
    log.info('stopped');
    log.flush();
  }
}

/** Configuration and process settings. @throws ConfigError, which is logged as well */
function configured(args: { readonly config?: string }) {
  try {
    const config = loadConfig({ path: args.config, env: process.env });
    return { config, settings: processSettings(process.env) };
  } catch (error) {
    notStarted(createLog('info', []), error);
    throw error;
  }
}

/** The last log line of a failed start is its cause: errors of closing come before it. */
function notStarted(log: Log, error: unknown): void {
  log.fatal({ err: error }, 'not started');
  log.flush();
}

/**
 * Last opened, first closed; also when opening failed half-way, or a listener without its sibling
 * would keep on answering.
 */
async function closed(opened: Opened, log: Log): Promise<void> {
  let mayLinger = false;
  for (const close of opened.reverse())
    try {
      mayLinger = (await close()) === MAY_LINGER || mayLinger;
    } catch (error) {
      log.warn({ err: error }, 'closing failed');
    }
  // Not before the caller has logged its last lines and set the exit code.
  if (mayLinger) setImmediate(() => process.exit());
}

/** Opens everything, notes the closers, and resolves to the drain once both listeners listen. */
async function open(
  config: ReturnType<typeof loadConfig>,
  drainSeconds: number,
  log: Log,
  opened: Opened,
  openers: Openers,
): Promise<() => Promise<void>> {
  const store = await openers.openStore({ ...config.storage, merchantId: config.merchant.id }, log);
  opened.push(() => store.close());
  const rail = config.x402 === undefined ? undefined : await openers.createRail(config.x402, log);
  if (rail !== undefined) opened.push(() => rail.close());

  const tracing = await openTracing(process.env, log);
  opened.push(async () => ((await tracing.close()) ? undefined : MAY_LINGER));

  // The hook on the management port and the signal start the same drain; both need the gateway.
  const drain = (): Promise<void> => drained(gateway, agents, { drainSeconds, finishMs: finishMs(config) }, log);
  const gateway = await createGateway({ config, store, rail, log, tracing }, drain);
  opened.push(() => gateway.close());
  const onRefused = refusalLog(log);
  const agents = createListener({
    app: gateway.agents,
    closing: () => gateway.lifecycle.draining(),
    onRefused,
    loadShedder: gateway.loadShedder,
    relay: gateway.relay,
    maxConnections: connectionsFor(config.limits.maxInFlight),
  });
  const management = createListener({ app: gateway.management, onRefused });
  opened.push(
    () => agents.destroy(),
    () => management.destroy(),
  );
  const agentsAt = await listenAt(agents, 'server', config.server);
  const managementAt = await listenAt(management, 'management', config.management);
  const ports = { agents: agentsAt.port, management: managementAt.port };
  const facts = {
    ...ports,
    mode: config.x402?.mode,
    store: store.name,
    fronts: adaptersSummary(config),
    lostPayments: storeLossSummary(config),
  };
  log.info(facts, 'listening');
  collectStart();
  return drain;
}

function drained(
  gateway: Gateway,
  agents: Listener,
  { drainSeconds, finishMs }: { readonly drainSeconds: number; readonly finishMs: number },
  log: Log,
): Promise<void> {
  if (!gateway.lifecycle.draining()) log.info('draining');
  return gateway.lifecycle.drain({
    propagationMs: drainSeconds * 1_000,
    finishMs,
    stopListening: () => agents.stop(),
  });
}

/** A checkout goes on when its caller leaves: the process outlasts the longest one (acp 13.3). */
function finishMs({ protocols: { acp } }: ReturnType<typeof loadConfig>): number {
  return acp.enabled ? Math.max(FINISH_MS, longestTimeoutMs(acp.backend) + CHECKOUT_SPARE_MS) : FINISH_MS;
}

/** Listens at the address of a section. @throws Error that names the setting and the address */
export async function listenAt(
  listener: Pick<Listener, 'listen'>,
  section: 'server' | 'management',
  { host, port }: { readonly host: string; readonly port: number },
): Promise<AddressInfo> {
  try {
    return await listener.listen(host, port);
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
    const fault = FAULTS[code];
    if (fault === undefined) throw cause;
    const [setting, why] = fault;
    const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    throw new Error(`${section}.${setting}: ${address} ${why} (${code})`, { cause });
  }
}

/** Settings of the process, from the environment only. */
interface ProcessSettings {
  readonly logLevel: string;
  readonly drainSeconds: number;
}

/** @throws ConfigError that names the variable and what would be right */
export function processSettings(env: Readonly<Record<string, string | undefined>>): ProcessSettings {
  const problems = new ProblemList();
  const logLevel = env['LOG_LEVEL'] ?? 'info';
  if (!LEVELS.includes(logLevel)) problems.add('LOG_LEVEL', `must be one of ${LEVELS.join(', ')}`);
  const drain = env['GATEWAY_DRAIN_SECONDS'] ?? String(DEFAULT_DRAIN_SECONDS);
  const drainSeconds = /^\d+(\.\d+)?$/.test(drain) ? Number(drain) : Number.NaN;
  if (!(drainSeconds <= MAX_DRAIN_SECONDS))
    problems.add('GATEWAY_DRAIN_SECONDS', `must be a number of seconds from 0 to ${MAX_DRAIN_SECONDS}`);
  problems.throwIfAny();
  return { logLevel, drainSeconds };
}

/**
 * SIGHUP asks for the configuration to be read again, which only a restart does; the system's
 * default would end running calls without a drain. From a terminal SIGHUP means that the terminal
 * is gone, and the gateway ends with it.
 */
function stayOnHangUp(log: Log): void {
  if ([process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY)) return;
  process.on('SIGHUP', () => {
    log.warn('SIGHUP: the configuration is read at start only: restart to change it');
    log.flush();
  });
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}
