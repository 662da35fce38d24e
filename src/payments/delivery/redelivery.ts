/**
 * Fetches what a buyer paid for when the buyer is not there: the reconciler sends the stored
 * request to the backend and the answer is kept.
 */

import {
  type BackendAnswer,
  BackendError,
  type BackendFailure,
  classify,
  type Exchange,
} from '../../backend/exchange.ts';
import { backendHeaders, relayedHeaders } from '../../backend/header-policy.ts';
import { isSealed } from '../../crypto/seal.ts';
import { protocolOf } from '../../events/event.ts';
import type { Journal } from '../../events/journal.ts';
import { type KeptAnswer, MAX_KEPT_BYTES } from '../ledger/ledger.ts';
import type { Paid } from '../settlement/settlement-request.ts';
import { readStoredRequest } from '../settlement/stored-purchase.ts';
import { backendIdempotencyKey } from '../settlement/terms.ts';
import type { DeliveryRecorder } from './delivery-recorder.ts';

const TOO_LARGE: BackendFailure = 'response_too_large';
/** Left to the buyer, whose next call brings the request. */
const UNREADABLE = { kind: 'failed', status: 0, reason: 'request_unreadable', requestWritten: false } as const;

/** What of a resource is needed without its buyer. Milliseconds and bytes. */
export interface Deliverable {
  /** Whether the backend may be sent its request again. */
  readonly repeatable: boolean;
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** The backend gets the same Idempotency-Key as before, so one that honours it works once. */
export async function fetchForBuyer(
  { record, lease, held }: Paid,
  resource: Deliverable,
  journal: Journal,
  exchange: Exchange,
  deliveries: Pick<DeliveryRecorder, 'undelivered'>,
): Promise<void> {
  const began = performance.now();
  const known = !isSealed(record.backendRequest);
  if (!known) held?.release();
  const fetched = known ? await fetchAnswer(record, resource, held?.exchange ?? exchange) : UNREADABLE;
  const durationMs = Math.round(performance.now() - began);
  const repeatable = known && resource.repeatable;
  const { requestId, callId } = record;
  const facts = { requestId, callId, durationMs, journal, lease, repeatable };
  if (fetched.kind === 'answer') {
    const { answer } = fetched;
    journal.record('backend.called', { status: 'ok', durationMs, data: { status: answer.status } });
    await deliveries.undelivered(record, {
      ...facts,
      backendStatus: answer.status,
      failure: undefined,
      requestWritten: true,
      answer,
    });
    return;
  }
  const { status, reason, requestWritten } = fetched;
  const data = { code: 'BACKEND_ERROR', ...(status === 0 ? {} : { status }), ...(reason === '' ? {} : { reason }) };
  journal.record('backend.failed', { status: 'error', durationMs, data });
  // An answer that is too large to be kept is fetched again only for its buyer.
  const again = repeatable && reason !== TOO_LARGE;
  const failed = {
    repeatable: again,
    failure: 'BACKEND_ERROR',
    backendStatus: status,
    requestWritten,
    answer: undefined,
  };
  await deliveries.undelivered(record, { ...facts, ...failed });
}

type Fetched =
  | { readonly kind: 'answer'; readonly answer: KeptAnswer }
  /** `status` 0: no answer came. `reason`: of contract 1.2, empty when the status is enough. */
  | { readonly kind: 'failed'; readonly status: number; readonly reason: string; readonly requestWritten: boolean };

async function fetchAnswer(record: Paid['record'], resource: Deliverable, exchange: Exchange): Promise<Fetched> {
  const { payId, requestId, channel, resourceId, payer, receiptId } = record;
  const request = readStoredRequest(record.backendRequest, resource.headers);
  const headers = backendHeaders({
    configured: request.headers,
    caller: request.callerHeaders,
    requestId,
    protocol: protocolOf(channel),
    resourceId,
    payer,
    receiptId,
    idempotencyKey: backendIdempotencyKey(payId),
  });
  const { timeoutMs, maxResponseBytes } = resource;
  try {
    const limits = { timeoutMs, maxResponseBytes: Math.min(maxResponseBytes, MAX_KEPT_BYTES) };
    const answer = await exchange({ ...request, headers }, limits);
    const outcome = classify(answer.status, []);
    if (outcome.kind === 'deliver') return { kind: 'answer', answer: await wholeAnswer(answer) };
    answer.body.destroy();
    const reason = outcome.kind === 'redirect' ? 'redirect_not_followed' : '';
    return { kind: 'failed', status: answer.status, reason, requestWritten: true };
  } catch (thrown) {
    if (!(thrown instanceof BackendError)) throw thrown;
    const reason = thrown.reason === 'unreachable' ? 'transport' : thrown.reason;
    return { kind: 'failed', status: 0, reason, requestWritten: thrown.requestWritten };
  }
}

async function wholeAnswer({ status, headers, body }: BackendAnswer): Promise<KeptAnswer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk as Uint8Array);
  return { status, headers: relayedHeaders(headers, { free: false, status }), body: Buffer.concat(chunks) };
}
