/** How the tools of peers call the backend. */

import { Pool } from 'undici';

/**
 * How the tool of a peer asks the merchant: INPUT, or what came instead of it, against the
 * merchant's answer.
 */
export type AskMerchant = (input: unknown) => Promise<Record<string, unknown>>;

/** Connections to the merchant that a peer may have: one for each request that is in flight. */
const CONNECTIONS = 32;
const HEADERS = { 'content-type': 'application/json', accept: 'application/json' };

/** The cheapest client there is. */
export function pooledMerchant(backendUrl: string): AskMerchant {
  const pool = new Pool(backendUrl, { connections: CONNECTIONS, pipelining: 1 });
  return async (input) => {
    const sent = JSON.stringify(input);
    const { statusCode, body } = await pool.request({ method: 'POST', path: '/report', headers: HEADERS, body: sent });
    return answered(statusCode, await body.json());
  };
}

/** What agents are written with: the samples of the A2A SDK ask with the `fetch` of the runtime. */
export function fetchedMerchant(backendUrl: string): AskMerchant {
  const url = `${backendUrl}/report`;
  return async (input) => {
    const answer = await fetch(url, { method: 'POST', headers: HEADERS, body: JSON.stringify(input) });
    return answered(answer.status, await answer.json());
  };
}

function answered(status: number, report: unknown): Record<string, unknown> {
  if (status !== 200) throw new Error(`the merchant answered ${status}`);
  return report as Record<string, unknown>;
}
