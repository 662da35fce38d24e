/** Calls over the backend exchange and what they bring, for the specs of this folder. */

import { type BackendConnection, createExchange } from '../../src/backend/backend-connection.ts';
import {
  BackendError,
  type BackendFailure,
  type BackendRequest,
  type ExchangeLimits,
  type Sale,
} from '../../src/backend/backend-exchange.ts';
import { answer, type RawBackend, rawBackend, type Script } from './raw-backend.ts';

/** What a caller of the exchange gets in the end. */
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

let sales = 0;
/** A sale of one resource to a payer of its own, unless given. */
export const saleOf = (changes: Partial<Sale> = {}): Sale => {
  sales += 1;
  return { payId: `pay ${sales}`, payer: `0xab${sales}`, resourceId: 'one', ...changes };
};

/** Answers every request with 200. */
export const answering: Script = (socket) => answer(socket);
/** Takes requests and answers none. */
export const silent: Script = () => {};

/** A call that failed before its answer, whose request may have arrived. */
export const lost = (reason: BackendFailure, at: 'head' | 'body' = 'head'): Got => ({
  ...{ kind: 'failed', at, reason, requestWritten: true },
});
/** A call of which certainly nothing was written. */
export const notSent = (reason: BackendFailure): Got => ({
  ...{ kind: 'failed', at: 'head', reason, requestWritten: false },
});

/** Makes the call and reads the answer to its end. */
export async function call(
  { exchange }: Pick<BackendConnection, 'exchange'>,
  request = GET,
  limits: Partial<ExchangeLimits> = {},
): Promise<Got> {
  let at: 'head' | 'body' = 'head';
  try {
    const { status, body } = await exchange(request, { ...LIMITS, ...limits });
    at = 'body';
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(chunk);
    return { kind: 'answer', status, body: Buffer.concat(chunks) };
  } catch (thrown) {
    if (!(thrown instanceof BackendError)) throw thrown;
    return { kind: 'failed', at, reason: thrown.reason, requestWritten: thrown.requestWritten };
  }
}

/** Opens a raw backend and the way to it, and closes both after the test. */
export async function withBackend(
  script: Script,
  test: (connection: BackendConnection, backend: RawBackend) => Promise<void>,
  options: { readonly maxSockets?: number; readonly reuse?: boolean } = {},
): Promise<void> {
  const backend = await rawBackend(script);
  const connection = createExchange({ origin: backend.origin, ...options });
  try {
    await test(connection, backend);
  } finally {
    await connection.close();
    await backend.close();
  }
}

/** An origin at which nothing listens. */
export async function refusingOrigin(): Promise<string> {
  const { origin, close } = await rawBackend(silent);
  await close();
  return origin;
}
