import { configWarnings, loadConfig } from '../config/load.ts';
import { createGateway, type Gateway } from '../gateway.ts';
import { createRail } from '../payments/x402/create-rail.ts';
import { createListener, type Listener } from '../server.ts';
import { openStore } from '../store/open.ts';
import { createLog, type Log } from '../telemetry/log.ts';

/** New calls are still served this long after the drain began, seconds, unless GATEWAY_DRAIN_SECONDS says otherwise. */
const DEFAULT_DRAIN_SECONDS = 5;
/** Running calls may take this long after that, milliseconds. */
const FINISH_MS = 30_000;

/** `acg serve`: runs the gateway until SIGTERM or SIGINT. A second signal ends it at once. */
export async function serve(args: { readonly config?: string }): Promise<void> {
  const config = loadConfig({ path: args.config, env: process.env });
  const log = createLog(process.env['LOG_LEVEL'] ?? 'info');
  for (const warning of configWarnings(config)) log.warn(warning);
  const store = await openStore({ ...config.storage, merchantId: config.merchant.id }, log);
  const rail = config.x402 === undefined ? undefined : await createRail(config.x402, log);

  // The hook on the management port and the signal start one and the same drain; both need the gateway they end.
  const drain = (): Promise<void> => stopping(gateway, [agents], log);
  const gateway = createGateway({ config, store, rail, log }, drain);
  const draining = (): boolean => gateway.lifecycle.draining();
  const agents = createListener(gateway.agents, draining);
  const management = createListener(gateway.management, () => false);

  const { server, management: hooks } = config;
  const agentsAt = await agents.listen(server.host, server.port);
  const managementAt = await management.listen(hooks.host, hooks.port);
  log.info(
    { agents: agentsAt.port, management: managementAt.port, mode: config.x402?.mode, store: store.name },
    'listening',
  );

  await signalled();
  process.once('SIGTERM', () => process.exit(1));
  process.once('SIGINT', () => process.exit(1));
  await drain();
  management.stop();
  agents.destroy();
  management.destroy();
  await gateway.close();
  await rail?.close();
  await store.close();
  log.info('stopped');
  log.flush();
}

function stopping(gateway: Gateway, listeners: readonly Listener[], log: Log): Promise<void> {
  log.info('draining');
  const seconds = Number(process.env['GATEWAY_DRAIN_SECONDS'] ?? DEFAULT_DRAIN_SECONDS);
  return gateway.lifecycle.drain({
    propagationMs: (Number.isFinite(seconds) && seconds >= 0 ? seconds : DEFAULT_DRAIN_SECONDS) * 1_000,
    finishMs: FINISH_MS,
    stopListening() {
      for (const listener of listeners) listener.stop();
    },
  });
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}
