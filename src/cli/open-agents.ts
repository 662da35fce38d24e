/** Opens what a process needs to serve agents: store, rail, traces, gateway and its listener. */

import type { AddressInfo } from 'node:net';
import { createGateway } from '../app/gateway.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import { createRails } from '../payments/x402/create-rails.ts';
import { entriesIn } from '../payments/x402/wire/settings.ts';
import { connectionsFor, createListener, type Listener } from '../server/listener/listen.ts';
import type { AppProbeSettings } from '../sidecar/app-probe-settings.ts';
import type { PodHooks } from '../sidecar/pod-hooks.ts';
import { openStore } from '../store/open.ts';
import { type Log, refusalLog } from '../telemetry/log/log.ts';
import { collectorFrom, PASSED_ON, type Tracing } from '../telemetry/traces/tracing.ts';

/** Functions that open store and rail; a test build that must fail visibly brings its own. */
export interface Openers {
  readonly openStore: typeof openStore;
  readonly createRails: typeof createRails;
}

/**
 * Opens a gateway and the listener of its agents, which does not listen yet.
 * Closers are noted in `opened` as soon as there are some.
 */
export async function openAgents(
  { config, appProbes }: { readonly config: GatewayConfig; readonly appProbes?: AppProbeSettings },
  hooks: PodHooks,
  log: Log,
  opened: Opened,
  openers: Openers = { openStore, createRails },
) {
  const store = await openers.openStore({ ...config.storage, merchantId: config.merchant.id }, log);
  opened.push(() => store.close());
  const rail = config.x402 === undefined ? undefined : await openers.createRails(entriesIn(config), log);
  if (rail !== undefined) opened.push(() => rail.close());

  const tracing = await openTracing(process.env, log);
  opened.push(async () => ((await tracing.close()) ? undefined : MAY_LINGER));

  const gateway = await createGateway(
    { config, store, rail, log, tracing, ...(appProbes === undefined ? {} : { appProbes }) },
    hooks,
  );
  opened.push(() => gateway.close());
  let followed = config;
  const agents = createListener({
    app: gateway.agents,
    closing: () => gateway.lifecycle.draining(),
    onRefused: refusalLog(log),
    loadShedder: gateway.loadShedder,
    relay: gateway.relay,
    maxConnections: () => connectionsFor(followed.limits.maxInFlight),
    sharesClients: () => followed.server.trustProxy === 0,
  });
  opened.push(() => agents.destroy());
  const address = { ...config.server };
  return {
    gateway,
    agents,
    storeName: store.name,
    /** Listens at the configured address. */
    async listen(): Promise<AddressInfo> {
      const at = await listenAt(agents, 'server', address);
      // `listenAgain` takes the same port after a drain, also where the system chose it.
      address.port = at.port;
      return at;
    },
    /** Listens again where it listened before. */
    listenAgain: () => listenAt(agents, 'server', address),
    /** Takes over the listener settings of another configuration. */
    follow(next: GatewayConfig): void {
      followed = next;
    },
  };
}

/**
 * Traces for the collector that the standard variables of OpenTelemetry name, or none. The exporter
 * is loaded only for a collector, because it costs start time and memory. @throws ConfigError
 */
async function openTracing(
  env: Readonly<Record<string, string | undefined>>,
  log: Pick<Log, 'info' | 'warn'>,
): Promise<Tracing> {
  const collector = collectorFrom(env);
  if (collector === undefined) return PASSED_ON;
  for (const warning of collector.warnings) log.warn(warning);
  const { openOtlp } = await import('../telemetry/traces/otlp.ts');
  return openOtlp(env, (cause) => log.warn({ err: cause }, 'the collector does not take traces'));
}

/** Returned by a closer whose part may keep the process alive, as an exporter without collector. */
const MAY_LINGER = Symbol('may linger');

/** Error codes of the system for an address, and the setting that causes each. */
const FAULTS: Readonly<Record<string, readonly [setting: 'host' | 'port', why: string]>> = {
  EADDRINUSE: ['port', 'is taken by another process'],
  EACCES: ['port', 'may not be opened by this user'],
  EADDRNOTAVAIL: ['host', 'is no address of this machine'],
};

/** Closers, in the order of opening. */
export type Opened = (() => unknown)[];

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

/**
 * Closes the parts, the last opened first; also when opening failed half-way, because an open
 * listener would keep on answering.
 */
export async function closed(opened: Opened, log: Log): Promise<void> {
  let mayLinger = false;
  for (const close of opened.reverse())
    try {
      mayLinger = (await close()) === MAY_LINGER || mayLinger;
    } catch (error) {
      log.warn({ err: error }, 'closing failed');
    }
  // Exits after the caller has logged its last lines and set the exit code.
  if (mayLinger) setImmediate(() => process.exit());
}
