import { Pool } from 'undici';

/** Connections to the merchant that a peer may have: one for each request that is in flight. */
const CONNECTIONS = 32;

/** How a peer's tool asks the merchant: with the cheapest client there is, kept connections, and one parse of the answer. */
export function merchantClient(backendUrl: string): (input: unknown) => Promise<Record<string, unknown>> {
  const pool = new Pool(backendUrl, { connections: CONNECTIONS, pipelining: 1 });
  return async (input) => {
    const { statusCode, body } = await pool.request({
      method: 'POST',
      path: '/report',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(input),
    });
    const report = (await body.json()) as Record<string, unknown>;
    if (statusCode !== 200) throw new Error(`the merchant answered ${statusCode}`);
    return report;
  };
}
