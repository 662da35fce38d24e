/**
 * Opens the backend behind its circuit breaker, shows its state in the log and at `/metrics`, and
 * joins all exchanges with the merchant's services for the hooks of the pod.
 */

import { type BackendConnection, type WatchedBackend, watchBackend } from '../backend/backend-connection.ts';
import type { ReserveBackend } from '../backend/backend-exchange.ts';
import type { ReachListener } from '../backend/circuit-breaker.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import type { Fence } from '../sidecar/lifecycle.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';

export interface Backend extends WatchedBackend {
  /** False while calls are refused because no money may be taken for them. */
  readonly reachable: () => boolean;
}

/** The values of `acg_backend_breaker`. */
const BREAKER = { closed: 0, probation: 1, open: 2 } as const;

/** `inUse`: the configuration in use, whose headers a probe carries. */
export function openBackend(
  inUse: { readonly config: Pick<GatewayConfig, 'backend'> },
  fence: Pick<Fence, 'pass'>,
  log: Log,
  metrics: Metrics,
): Backend {
  const { origin, probePath: path } = inUse.config.backend;
  const backend = watchBackend({
    origin,
    probe: path === undefined ? undefined : { path, headers: () => inUse.config.backend.headers },
    onChange: reachLog(log),
  });
  const reachable = (): boolean => backend.facts().state !== 'open';
  metrics.gauge({
    name: 'acg_backend_reachable',
    help: '0 while the backend cannot be reached and paid calls are refused before any money moves. Look at the service itself.',
    read: () => (reachable() ? 1 : 0),
  });
  metrics.gauge({
    name: 'acg_backend_breaker',
    help: '0 closed; 1 the backend takes connections again and one paid call at a time shows whether it answers; 2 open, nothing is sold.',
    read: () => BREAKER[backend.facts().state],
  });
  metrics.counter({
    name: 'acg_backend_breaker_opened_total',
    help: 'How often the backend went away. refused: no connection; silent: it took requests and answered none of them.',
    label: 'trouble',
    read: () => backend.facts().opened,
  });
  metrics.counter({
    name: 'acg_backend_refused_total',
    help: 'Paid calls that cost nothing because the backend could not be reached: breaker, connect; sockets: all were in use.',
    label: 'reason',
    read: () => backend.facts().refused,
  });
  metrics.gauge({
    name: 'acg_backend_held_connections',
    help: 'Connections to the backend that calls hold while their money moves; at most half of all there are.',
    read: () => backend.facts().held,
  });
  // A call that was verified when the backend began to restart waits here, before its money moves.
  const reserve: ReserveBackend = async (sale) => ((await fence.pass()) ? backend.reserve(sale) : undefined);
  return { ...backend, reserve, reachable };
}

/** One line for each change, so also one when the backend is away at start. */
function reachLog(log: Log): ReachListener {
  return (reach) => {
    if (reach.reachable) log.info('the backend can be reached');
    else
      log.warn(
        { trouble: reach.trouble, err: reach.cause },
        'the backend cannot be reached: paid calls are refused before any money moves',
      );
  };
}

/** The part of a passthrough that is an exchange. */
interface PassedRequests {
  running(): number;
  interrupt(): void;
}

export type Exchanges = ReturnType<typeof allExchanges>;

/**
 * Counts and ends the exchanges between the gateway and the merchant.
 * `checkouts` and `passthrough`: undefined where they are not enabled.
 */
export function allExchanges(
  backend: WatchedBackend,
  checkouts: BackendConnection | undefined,
  passthrough: PassedRequests | undefined,
) {
  const connections = [backend, ...(checkouts === undefined ? [] : [checkouts])];
  const sum = (count: (connection: BackendConnection) => number): number =>
    connections.reduce((total, connection) => total + count(connection), 0);
  return {
    /** Counts exchanges: those that are paid for, or may be at any moment, and all others. */
    running() {
      const paid = sum((connection) => connection.paidInFlight());
      const free = sum((connection) => connection.inFlight()) - paid + (passthrough?.running() ?? 0);
      return { paid: paid + backend.facts().held, free };
    },
    /**
     * Ends exchanges, so that their calls are answered; no connection begins one until `resume`.
     */
    async interrupt(): Promise<void> {
      passthrough?.interrupt();
      await Promise.all(connections.map((connection) => connection.interrupt()));
    },
    resume(): void {
      for (const connection of connections) connection.resume();
    },
    /** Tries now whether the backend of the resources can be reached. */
    tryBackend: () => backend.tryNow(),
  };
}
