import { configWarnings, loadConfig } from '../config/load.ts';
import { secretsOf } from '../config/secrets.ts';
import { frontsSummary } from '../config/summary.ts';
import { createGateway, type Gateway } from '../gateway.ts';
import { createRail } from '../payments/x402/create-rail.ts';
import { createListener, type Listener } from '../server.ts';
import { openStore } from '../store/open.ts';
import { createLog, type Log, refusalLog } from '../telemetry/log.ts';
import { processSettings } from './process-settings.ts';

/** Running calls may take this long after the listener closed, milliseconds. */
const FINISH_MS = 30_000;

/** What has to be closed, in the order it was opened. */
type Opened = (() => unknown)[];

/** What stands behind the ports. */
interface Openers {
  readonly openStore: typeof openStore;
  readonly createRail: typeof createRail;
}

/**
 * `acg serve`: runs the gateway until SIGTERM or SIGINT. A second signal ends it at once. `openers`: who opens store and rail; a
 * build that is to misbehave, to prove that it would be noticed, brings its own.
 */
export async function serve(
  args: { readonly config?: string },
  openers: Openers = { openStore, createRail },
): Promise<void> {
  const config = loadConfig({ path: args.config, env: process.env });
  const settings = processSettings(process.env);
  const log = createLog(settings.logLevel, secretsOf(config));
  for (const warning of configWarnings(config)) log.warn(warning);
  const opened: Opened = [() => farewell(log)];
  try {
    const drain = await open(config, settings.drainSeconds, log, opened, openers);
    await signalled();
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1));
    await drain();
  } finally {
    // Last opened, first closed; also when opening failed half-way, or a listener without its sibling would keep on answering.
    for (const close of opened.reverse()) await close();
  }
}

/** Opens everything, noting how to close it, and resolves to the drain once both listeners listen. */
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

  // The hook on the management port and the signal start one and the same drain; both need the gateway they end.
  const drain = (): Promise<void> => drained(gateway, agents, drainSeconds, log);
  const gateway = createGateway({ config, store, rail, log }, drain);
  opened.push(() => gateway.close());
  const agents = createListener(gateway.agents, () => gateway.lifecycle.draining(), refusalLog(log));
  const management = createListener(gateway.management, () => false, refusalLog(log));
  opened.push(
    () => agents.destroy(),
    () => management.destroy(),
  );
  const agentsAt = await agents.listen(config.server.host, config.server.port);
  const managementAt = await management.listen(config.management.host, config.management.port);
  const ports = { agents: agentsAt.port, management: managementAt.port };
  const facts = { ...ports, mode: config.x402?.mode, store: store.name, fronts: frontsSummary(config) };
  log.info(facts, 'listening');
  return drain;
}

function drained(gateway: Gateway, agents: Listener, drainSeconds: number, log: Log): Promise<void> {
  if (!gateway.lifecycle.draining()) log.info('draining');
  return gateway.lifecycle.drain({
    propagationMs: drainSeconds * 1_000,
    finishMs: FINISH_MS,
    stopListening: () => agents.stop(),
  });
}

function farewell(log: Log): void {
  log.info('stopped');
  log.flush();
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}
