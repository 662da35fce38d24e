/** How the tools of peers call the backend. */

import { Pool } from 'undici';

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
