/** All exchanges with the merchant's services, taken together for the hooks of the pod. */

import type { BackendConnection, WatchedBackend } from '../backend/backend-connection.ts';

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
    /** Exchanges that are paid for, or may be at any moment, and all others. */
    running() {
      const paid = sum((connection) => connection.paidInFlight());
      const free = sum((connection) => connection.inFlight()) - paid + (passthrough?.running() ?? 0);
      return { paid: paid + backend.facts().held, free };
    },
    /** Ends what runs, so that its calls are answered; until `resume` nothing begins. */
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
