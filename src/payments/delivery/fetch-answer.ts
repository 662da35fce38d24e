/**
 * Gets the whole answer of the backend for a payment, to keep it until its buyer has it: for a call
 * that pays afterwards, and for the reconciler where the buyer is not there.
 */

import {
  type BackendAnswer,
  BackendError,
  type BackendRequest,
  classify,
  type Exchange,
  failureCode,
  type RelayStatuses,
  type Sale,
  TOO_LARGE,
  wireReason,
} from '../../backend/backend-exchange.ts';
import { backendHeaders, relayedHeaders } from '../../backend/header-policy.ts';
import { isSealed } from '../../crypto/seal.ts';
import { protocolOf } from '../../events/event.ts';
import type { Journal } from '../../events/journal.ts';
import { type KeptAnswer, MAX_KEPT_BYTES } from '../ledger/ledger.ts';
import type { Paid, Worked } from '../settlement/settlement-request.ts';
import { type PaymentContext, readStoredRequest, toldOfPayment } from '../settlement/terms.ts';
import type { DeliveryRecorder } from './delivery-recorder.ts';

/**
 * Sends a request once. An answer that is too large to be kept is a failure. `sale`: the payment
 * that was made for the request.
 */
export async function fetchAnswer(
  exchange: Exchange,
  request: BackendRequest,
  {
    timeoutMs,
    maxResponseBytes,
    relayStatuses,
  }: { readonly timeoutMs: number; readonly maxResponseBytes: number; readonly relayStatuses: RelayStatuses },
  sale?: Sale,
): Promise<Worked> {
  try {
    const most = Math.min(maxResponseBytes, MAX_KEPT_BYTES);
    const limits = { timeoutMs, maxResponseBytes: most, ...(sale === undefined ? {} : { sale }) };
    const answer = await exchange(request, limits);
    const { status } = answer;
    const outcome = classify(status, relayStatuses.sold);
    if (outcome === 'deliver') return { kind: 'answer', answer: await wholeAnswer(answer) };
    if (relayStatuses.unpaid.includes(status))
      return { kind: 'failed', failure: { status, requestWritten: true, relayed: await wholeAnswer(answer) } };
    answer.body.destroy();
    const reason = outcome === 'redirect' ? { reason: 'redirect_not_followed' } : {};
    return { kind: 'failed', failure: { status, ...reason, requestWritten: true } };
  } catch (thrown) {
    if (!(thrown instanceof BackendError)) throw thrown;
    const { requestWritten, reason } = thrown;
    return { kind: 'failed', failure: { status: 0, reason, requestWritten, cause: thrown } };
  }
}

async function wholeAnswer(answer: BackendAnswer): Promise<KeptAnswer> {
  // `whole` is read before `body`, which makes it undefined.
  const { status, headers, whole } = answer;
  const relayed = relayedHeaders(headers, { free: false, status });
  if (whole !== undefined) return { status, headers: relayed, body: whole };
  const chunks: Uint8Array[] = [];
  for await (const chunk of answer.body) chunks.push(chunk as Uint8Array);
  return { status, headers: relayed, body: Buffer.concat(chunks) };
}

/** The result for a sealed request without its key: the buyer's next call brings the request. */
const UNREADABLE: Worked = {
  kind: 'failed',
  failure: { status: 0, reason: 'request_unreadable', requestWritten: false },
};

/** The parts of a resource that a fetch without a buyer needs. Milliseconds and bytes. */
export interface Deliverable {
  /** The template; empty where the resource is gone. */
  readonly path: string;
  /** Whether the backend may be sent its request again. */
  readonly repeatable: boolean;
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
  readonly relayStatuses: RelayStatuses;
  readonly headers: Readonly<Record<string, string>>;
}

/** Keeps the answer for its buyer; a call of the backend has the payment's one Idempotency-Key. */
export async function fetchForBuyer(
  { record, lease, held, kept }: Paid,
  resource: Deliverable,
  journal: Journal,
  exchange: Exchange,
  deliveries: Pick<DeliveryRecorder, 'undelivered'>,
  contextOf?: PaymentContext,
): Promise<void> {
  const began = performance.now();
  const known = !isSealed(record.backendRequest);
  if (!known) held?.release();
  const fetch = async (): Promise<Worked> =>
    known ? fetchAgain(record, resource, held?.exchange ?? exchange, contextOf) : UNREADABLE;
  const fetched: Worked = kept === undefined ? await fetch() : { kind: 'answer', answer: kept };
  const durationMs = Math.round(performance.now() - began);
  const repeatable = known && resource.repeatable;
  const { requestId, callId } = record;
  const facts = { requestId, callId, durationMs, journal, lease, repeatable };
  if (fetched.kind === 'answer') {
    const { answer } = fetched;
    if (kept === undefined)
      journal.record('backend.called', { status: 'ok', durationMs, data: { status: answer.status } });
    await deliveries.undelivered(record, {
      ...facts,
      backendStatus: answer.status,
      failure: undefined,
      requestWritten: true,
      answer,
      keptBefore: kept !== undefined,
    });
    return;
  }
  const { status, reason, requestWritten } = fetched.failure;
  const why = reason === undefined ? {} : { reason: wireReason(reason) };
  const data = { code: 'BACKEND_ERROR', ...(status === 0 ? {} : { status }), ...why };
  journal.record('backend.failed', { status: 'error', durationMs, data });
  // An answer that is too large to be kept is fetched again only for its buyer.
  const again = repeatable && reason !== TOO_LARGE;
  const failed = {
    repeatable: again,
    failure: { code: failureCode(fetched.failure), path: resource.path },
    backendStatus: status,
    requestWritten,
    answer: undefined,
  };
  await deliveries.undelivered(record, { ...facts, ...failed });
}

/** Sends the stored request of a payment again. */
async function fetchAgain(
  record: Paid['record'],
  resource: Deliverable,
  exchange: Exchange,
  contextOf: PaymentContext | undefined,
): Promise<Worked> {
  const { requestId, channel, resourceId } = record;
  const request = readStoredRequest(record.backendRequest, resource.headers);
  const headers = backendHeaders({
    configured: request.headers,
    caller: request.callerHeaders,
    requestId,
    protocol: protocolOf(channel),
    resourceId,
    ...toldOfPayment(record, requestId, contextOf),
  });
  return fetchAnswer(exchange, { ...request, headers }, resource, record);
}
