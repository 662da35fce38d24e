/** All exchanges with the merchant's services, taken together for the hooks of the pod. */

import type { BackendConnection, WatchedBackend } from '../backend/backend-connection.ts';

/** What runs between the gateway and the merchant. */
export interface Exchanges {
  /** Those that are paid for, or may be at any moment, and all others. */
  running(): { readonly paid: number; readonly free: number };
  /** Ends what runs, so that its calls are answered; until `resume` nothing begins. */
  interrupt(): Promise<void>;
  resume(): void;
  /** Tries now whether the backend of the resources can be reached. */
  tryBackend(): Promise<void>;
}

/** The part of a passthrough that is an exchange. */
interface PassedRequests {
  running(): number;
  interrupt(): void;
}

/** `checkouts` and `passthrough`: undefined where they are not enabled. */
export function allExchanges(
  backend: WatchedBackend,
  checkouts: BackendConnection | undefined,
  passthrough: PassedRequests | undefined,
): Exchanges {
  const connections = [backend, ...(checkouts === undefined ? [] : [checkouts])];
  const sum = (count: (connection: BackendConnection) => number): number =>
    connections.reduce((total, connection) => total + count(connection), 0);
  return {
    running() {
      const paid = sum((connection) => connection.paidInFlight());
      const free = sum((connection) => connection.inFlight()) - paid + (passthrough?.running() ?? 0);
      return { paid: paid + backend.facts().held, free };
    },
    async interrupt() {
      passthrough?.interrupt();
      await Promise.all(connections.map((connection) => connection.interrupt()));
    },
    resume() {
      for (const connection of connections) connection.resume();
    },
    tryBackend: () => backend.tryNow(),
  };
}
