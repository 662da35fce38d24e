import { type BackendConnection, createExchange } from '../../src/backend/backend-connection.ts';
import {
  BackendError,
  type BackendFailure,
  type BackendRequest,
  type ExchangeLimits,
} from '../../src/backend/exchange.ts';
import { type RawBackend, rawBackend, type Script } from './raw-backend.ts';

/** What a caller of the exchange got in the end. */
export type Got =
  | { readonly kind: 'answer'; readonly status: number; readonly body: Buffer }
  | {
      readonly kind: 'failed';
      readonly at: 'head' | 'body';
      readonly reason: BackendFailure;
      readonly requestWritten: boolean;
    };

export const GET: BackendRequest = { method: 'GET', path: '/reports/rome?year=2026', headers: {}, body: undefined };
export const POST: BackendRequest = { method: 'POST', path: '/orders', headers: {}, body: Buffer.from('{"n":1}') };
export const LIMITS: ExchangeLimits = { timeoutMs: 2_000, maxResponseBytes: 65_536 };

/** Makes the call and reads the answer to its end. */
export async function call(
  hop: Pick<BackendConnection, 'exchange'>,
  request = GET,
  limits: Partial<ExchangeLimits> = {},
): Promise<Got> {
  let at: 'head' | 'body' = 'head';
  try {
    const { status, body } = await hop.exchange(request, { ...LIMITS, ...limits });
    at = 'body';
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(chunk);
    return { kind: 'answer', status, body: Buffer.concat(chunks) };
  } catch (thrown) {
    if (!(thrown instanceof BackendError)) throw thrown;
    return { kind: 'failed', at, reason: thrown.reason, requestWritten: thrown.requestWritten };
  }
}

/** A raw merchant and the way to it, both closed afterwards, whatever the test did. */
export async function withMerchant(
  script: Script,
  test: (hop: BackendConnection, backend: RawBackend) => Promise<void>,
  maxSockets?: number,
): Promise<void> {
  const backend = await rawBackend(script);
  const hop = createExchange({ origin: backend.origin, ...(maxSockets === undefined ? {} : { maxSockets }) });
  try {
    await test(hop, backend);
  } finally {
    await hop.close();
    await backend.close();
  }
}
