import { setTimeout as pause } from 'node:timers/promises';
import type { Connection } from './backend-socket.ts';
import { type Trial, Unanswered } from './circuit-breaker.ts';

/** How long a connection that opened is watched, milliseconds: one that is closed right behind its accept is no way. */
const WATCHED_MS = 20;
/** How long the merchant may take to answer a probe, milliseconds. */
const PROBE_TIMEOUT_MS = 1_000;

/** What may be asked of a merchant at any time. */
export interface Probe {
  /** Begins with `/`. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Tries whether the merchant is there: by a connection that opens, and, where he may be asked something, by any answer to a GET. Nothing
 * is kept of either, so that a trial never finds the connection of the one before.
 */
export function createTrial(connection: Connection, host: string, probe: Probe | undefined): Trial {
  return async () => {
    try {
      await connection.opened();
      if (probe === undefined) {
        await pause(WATCHED_MS);
        if (!connection.live) throw new Unanswered('a new connection was closed at once');
        return 'connected';
      }
      await asked(connection, host, probe);
      return 'answered';
    } finally {
      connection.drop();
    }
  };
}

async function asked(connection: Connection, host: string, { path, headers }: Probe): Promise<void> {
  try {
    const { body } = await connection.request({
      method: 'GET',
      path,
      headers: { 'accept-encoding': 'identity', ...headers, host },
      signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
    });
    // Nobody reads it; its connection ends with the trial.
    body.on('error', () => {}).destroy();
  } catch (cause) {
    throw new Unanswered('no answer to the probe', cause);
  }
}
