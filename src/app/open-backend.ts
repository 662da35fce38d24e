import { type WatchedBackend, watchBackend } from '../backend/backend-connection.ts';
import type { ReachListener } from '../backend/circuit-breaker.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';

/** The way to the merchant's service, and whether it is known to be there. */
export interface Backend extends WatchedBackend {
  /** False while calls are refused because no money may be taken for them. */
  readonly reachable: () => boolean;
}

/** `acg_backend_breaker`. */
const BREAKER = { closed: 0, probation: 1, open: 2 } as const;

/** Opens the way to the merchant, and shows its state in the log and at `/metrics`. */
export function openBackend({ backend }: Pick<GatewayConfig, 'backend'>, log: Log, metrics: Metrics): Backend {
  const { origin, headers, probePath } = backend;
  const merchant = watchBackend({
    origin,
    probe: probePath === undefined ? undefined : { path: probePath, headers },
    onChange: reachLog(log),
  });
  const reachable = (): boolean => merchant.facts().state !== 'open';
  metrics.gauge({
    name: 'acg_backend_reachable',
    help: '0 while the merchant cannot be reached and paid calls are refused before any money moves. Look at his service.',
    read: () => (reachable() ? 1 : 0),
  });
  metrics.gauge({
    name: 'acg_backend_breaker',
    help: '0 closed; 1 he takes connections again and one paid call at a time shows whether he answers; 2 open, nothing is sold.',
    read: () => BREAKER[merchant.facts().state],
  });
  metrics.counter({
    name: 'acg_backend_breaker_opened_total',
    help: 'How often the merchant went away. refused: no connection; silent: he took requests and answered none of them.',
    label: 'trouble',
    read: () => merchant.facts().opened,
  });
  metrics.counter({
    name: 'acg_backend_refused_total',
    help: 'Paid calls that cost nothing because the merchant could not be reached: breaker, connect; sockets: all were in use.',
    label: 'reason',
    read: () => merchant.facts().refused,
  });
  metrics.gauge({
    name: 'acg_backend_held_connections',
    help: 'Connections to the merchant that calls hold while their money moves; at most half of all there are.',
    read: () => merchant.facts().held,
  });
  return { ...merchant, reachable };
}

/** One line for each change, so also one when the merchant is not there at start. */
function reachLog(log: Log): ReachListener {
  return (reach) => {
    if (reach.reachable) log.info('the merchant can be reached');
    else
      log.warn(
        { trouble: reach.trouble, err: reach.cause },
        'the merchant cannot be reached: paid calls are refused before any money moves',
      );
  };
}
