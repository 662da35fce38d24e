/** `acg serve`: opens store, rail and listeners, runs until a signal, drains and closes. */

import type { AddressInfo } from 'node:net';
import { openAppProbes } from '../app/app-probe-guard.ts';
import { drainLengthOf } from '../app/drain-length.ts';
import { createGateway, type Gateway } from '../app/gateway.ts';
import { openHooks } from '../app/open-pod-hooks.ts';
import { openTracing } from '../app/open-tracing.ts';
import { openReloader } from '../app/reload.ts';
import { routeWarnings } from '../app/route-warnings.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import { type ConfigSource, loadDocument } from '../config/load.ts';
import { secretsOf } from '../config/secrets.ts';
import { adaptersSummary, storeLossSummary } from '../config/summary.ts';
import { configWarnings } from '../config/warnings.ts';
import { createRail } from '../payments/x402/create-rail.ts';
import { connectionsFor, createListener, type Listener } from '../server/listener/listen.ts';
import { drainSeconds } from '../sidecar/drain-length.ts';
import type { OpenedPodHooks } from '../sidecar/pod-hooks.ts';
import { openStore } from '../store/open.ts';
import { createLog, type Log, MaskedSecrets, refusalLog } from '../telemetry/log/log.ts';
import { collectorFrom } from '../telemetry/traces/collector.ts';
import { collectStart } from './collect-start.ts';
import { checkedDrain, processSettings } from './process-settings.ts';

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
  const start = configured(args);
  const { config } = start.loaded;
  const secrets = new MaskedSecrets([...secretsOf(config), ...(collectorFrom(process.env)?.secrets ?? [])]);
  const log = createLog(start.settings.logLevel, secrets);
  for (const warning of warningsOf(config)) log.warn(warning);
  const opened: Opened = [];
  const hangUp = stayOnHangUp(log);
  let hooks: OpenedPodHooks;
  try {
    hooks = await open({ ...start, secrets, hangUp }, log, opened, openers);
  } catch (error) {
    await closed(opened, log);
    notStarted(log, error);
    throw error;
  }
  try {
    await Promise.race([signalled(), hooks.failed]);
    hooks.stop();
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1));
    await hooks.drain();
  } catch (error) {
    log.fatal({ err: error }, 'not open again after the drain');
    throw error;
  } finally {
    await closed(opened, log);
    log.info('stopped');
    log.flush();
  }
}

/** Configuration and process settings. @throws ConfigError, which is logged as well */
function configured(args: { readonly config?: string }) {
  try {
    const source: ConfigSource = { path: args.config, env: process.env };
    const loaded = loadDocument(source);
    const settings = processSettings(process.env);
    checkedDrain(loaded.config, settings);
    return { source, loaded, settings, appProbes: openAppProbes(process.env, loaded.config) };
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

/** What a gateway is opened with. */
interface Start extends ReturnType<typeof configured> {
  readonly secrets: MaskedSecrets;
  readonly hangUp: HangUp;
}

/** What an operator should know about a configuration that is in use. */
function warningsOf(config: GatewayConfig): readonly string[] {
  return [...configWarnings(config), ...routeWarnings(config)];
}

/** Opens everything, notes the closers, and resolves to the hooks once both listeners listen. */
async function open(
  { source, loaded, settings, appProbes, secrets, hangUp }: Start,
  log: Log,
  opened: Opened,
  openers: Openers,
): Promise<OpenedPodHooks> {
  const { config } = loaded;
  const store = await openers.openStore({ ...config.storage, merchantId: config.merchant.id }, log);
  opened.push(() => store.close());
  const rail = config.x402 === undefined ? undefined : await openers.createRail(config.x402, log);
  if (rail !== undefined) opened.push(() => rail.close());

  const tracing = await openTracing(process.env, log);
  opened.push(async () => ((await tracing.close()) ? undefined : MAY_LINGER));

  // Hooks and signals start the same drain; both need the gateway, and the gateway shows the hooks.
  const gateway: Gateway = await createGateway(
    { config, store, rail, log, tracing, appProbes },
    { drain: () => hooks.drain(), release: () => hooks.release() },
  );
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
  const address = { ...config.server };
  const { merchantGraceSeconds, drainBudgetSeconds, backendPreStop } = settings;
  const length = drainLengthOf(config, settings.drainSeconds);
  const hooks = openHooks({
    ...{ config, gateway, agents, log, backendPreStop },
    listenAgain: () => listenAt(agents, 'server', address),
    drainLength: () => drainLengthOf(gateway.config(), settings.drainSeconds),
    merchantGraceMs: merchantGraceSeconds * 1_000,
    podGraceMs: (merchantGraceSeconds + (drainBudgetSeconds ?? drainSeconds(length))) * 1_000,
    endsWithinMs: drainBudgetSeconds === undefined ? undefined : (merchantGraceSeconds + drainBudgetSeconds) * 1_000,
  });
  opened.push(
    () => agents.destroy(),
    () => management.destroy(),
    () => hooks.stop(),
  );
  const agentsAt = await listenAt(agents, 'server', config.server);
  // The same one again after a drain, also where any free one was taken.
  address.port = agentsAt.port;
  const managementAt = await listenAt(management, 'management', config.management);
  const ports = { agents: agentsAt.port, management: managementAt.port };
  const facts = {
    ...ports,
    mode: config.x402?.mode,
    store: store.name,
    fronts: adaptersSummary(config),
    lostPayments: storeLossSummary(config),
    drainSeconds: drainSeconds(length),
  };
  log.info(facts, 'listening');
  const reloader = openReloader({
    ...{ source, loaded, warningsOf, log, metrics: gateway.metrics },
    mask: (next) => secrets.add(secretsOf(next)),
    check(next) {
      checkedDrain(next, settings);
      openAppProbes(process.env, next);
    },
    use(next) {
      gateway.reload(next);
      agents.server.maxConnections = connectionsFor(next.limits.maxInFlight);
    },
  });
  opened.push(() => reloader.close());
  hangUp.reloads(() => {
    if (reloader.reload() === 'unchanged') log.info('config unchanged');
  });
  collectStart();
  return hooks;
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

/** What SIGHUP asks for, once there is something that can do it. */
interface HangUp {
  reloads(reload: () => void): void;
}

/**
 * SIGHUP asks for the configuration to be read again; the system's default would end running calls
 * without a drain. From a terminal SIGHUP means that the terminal is gone, and the gateway ends
 * with it.
 */
function stayOnHangUp(log: Log): HangUp {
  let asked = (): void => log.warn('SIGHUP: the gateway is still starting, and reads its configuration');
  if ([process.stdin, process.stdout, process.stderr].every(({ isTTY }) => !isTTY))
    process.on('SIGHUP', () => {
      asked();
      log.flush();
    });
  return {
    reloads(reload) {
      asked = reload;
    },
  };
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}
