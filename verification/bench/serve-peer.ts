/** Serves the Express app of a peer. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Express } from 'express';
import { Pool } from 'undici';
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

const INSTALLED = join(import.meta.dirname, '../../node_modules');

/** `express` -> `express 5.3.0`, for the titles of peers. */
export function exact(...names: readonly string[]): string {
  return names.map((name) => `${name} ${versionOf(name)}`).join(' + ');
}

function versionOf(name: string): string {
  const { version } = JSON.parse(readFileSync(join(INSTALLED, name, 'package.json'), 'utf8')) as { version: string };
  return version;
}

/** Calls the backend from the tool of a peer with its input; resolves to the answer. */
export type AskBackend = (input: unknown) => Promise<Record<string, unknown>>;

/** Connections to the backend that a peer may have: one for each request that is in flight. */
const CONNECTIONS = 32;
const HEADERS = { 'content-type': 'application/json', accept: 'application/json' };

/** The cheapest client. */
export function pooledBackend(backendUrl: string): AskBackend {
  const pool = new Pool(backendUrl, { connections: CONNECTIONS, pipelining: 1 });
  return async (input) => {
    const sent = JSON.stringify(input);
    const { statusCode, body } = await pool.request({ method: 'POST', path: '/report', headers: HEADERS, body: sent });
    if (statusCode !== 200) throw new Error(`the backend answered ${statusCode}`);
    return (await body.json()) as Record<string, unknown>;
  };
}
