/** Serves the Express app of a peer. */

import type { Express } from 'express';
import type { Contestant } from './contestant.ts';

/**
 * Runs a peer's app in the process of that peer: PORT and BACKEND_URL come from its environment.
 */
export function servePeer(app: (backendUrl: string) => Express): void {
  const { PORT, BACKEND_URL } = process.env;
  if (PORT === undefined || BACKEND_URL === undefined) throw new Error('a peer needs PORT and BACKEND_URL');
  app(BACKEND_URL).listen(Number(PORT), '127.0.0.1', (error) => {
    if (error !== undefined) throw error;
  });
  // A clean exit, so that a profile is written.
  process.once('SIGTERM', () => process.exit(0));
}

/**
 * The program of a peer whose file runs `servePeer` when it is the main one. `own`: further
 * variables that the peer reads from its environment.
 */
export function peerProgram(file: string, own: Readonly<Record<string, string>> = {}): Contestant['program'] {
  return async ({ port, backendUrl }) => ({
    args: [file],
    // Peers run as in production: Express is slower without it.
    env: { PORT: String(port), BACKEND_URL: backendUrl, NODE_ENV: 'production', ...own },
  });
}
