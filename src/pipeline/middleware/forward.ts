/**
 * Sends the prepared request of a funded call to the backend, classifies the answer, and makes the
 * error where the backend does not deliver.
 */

import type { Readable } from 'node:stream';
import type { RequestHandler, Response } from 'express';
import {
  type BackendAnswer,
  BackendError,
  type BackendRequest,
  classify,
  type Exchange,
  failureCode,
  statusClass,
  TOO_LARGE,
  Undeliverable,
  wireReason,
} from '../../backend/backend-exchange.ts';
import { backendHeaders, relayedHeaders } from '../../backend/header-policy.ts';
import { type ErrorDetails, GatewayError, type ToldByBackend } from '../../errors.ts';
import { protocolOf } from '../../events/event.ts';
import type { Json } from '../../json/json.ts';
import type { DeliveryRecorder, Undelivered } from '../../payments/delivery/delivery-recorder.ts';
import type { PaymentRecord } from '../../payments/ledger/ledger.ts';
import { RETRY_WINDOW_MS } from '../../payments/ledger/table.ts';
import { passed } from '../../payments/settlement/attempt.ts';
import type { WorkFailure } from '../../payments/settlement/settlement-request.ts';
import { type PaymentContext, toldOfPayment } from '../../payments/settlement/terms.ts';
import { paymentDetails } from '../../payments/x402/wire/payment-response.ts';
import { isRepeatable, type Resource } from '../../resources/resource.ts';
import { isEncoded, isJsonType } from '../../server/http/request.ts';
import { elapsedMs } from '../../time/time.ts';
import { advanceCall, callAt, type FundedCall, type PreparedCall, type ProvenCall } from '../call.ts';

/** A free call ends with its caller; a paid one runs to its end. */
export function forward(exchange: Exchange, deliveries: DeliveryRecorder, contextOf?: PaymentContext): RequestHandler {
  return async function forwardMiddleware(_req, res, next) {
    const call = callAt(res, 'funded', 'answered');
    if (call.stage === 'answered') {
      // An earlier attempt got the backend's answer and kept it.
      next();
      return;
    }
    const { timeoutMs, maxResponseBytes, relayStatuses } = call.resource.backend;
    const paid = call.funding.kind === 'paid' ? call.funding : undefined;
    const atMost = Math.min(maxResponseBytes, call.responseWriter.maxAnswerBytes);
    const limits = {
      ...{ timeoutMs, maxResponseBytes: atMost },
      ...(paid === undefined ? { signal: call.left } : { sale: paid.record }),
    };
    if (paid !== undefined) passed('forwarding', paid.record.payId);
    const send = paid?.held?.exchange ?? exchange;
    try {
      const answer = await send(requestToBackend(call, paid?.record, contextOf), limits);
      void call.authorization?.finish?.('commit');
      const outcome = classify(answer.status, relayStatuses.sold, conditionsOf(call, paid?.record) !== undefined);
      if (outcome === 'deliver') {
        advanceCall(res, { ...call, stage: 'answered', answer, keptBefore: false });
        next();
        return;
      }
      const { status } = answer;
      const reason = outcome === 'redirect' ? { reason: 'redirect_not_followed' } : {};
      const told = await toldByBackend(answer);
      throw await backendFailed(call, deliveries, { ...reason, status, requestWritten: true, told });
    } catch (thrown) {
      if (!(thrown instanceof BackendError)) throw thrown;
      const { reason, requestWritten } = thrown;
      await finishMandate(res, call, requestWritten);
      throw await backendFailed(call, deliveries, { reason, status: 0, requestWritten, cause: thrown });
    }
  };
}

/** A free call that certainly was not sent has not used its mandate up: the use is released. */
async function finishMandate(res: Response, call: FundedCall, requestWritten: boolean): Promise<void> {
  const { authorization, ...unauthorized } = call;
  if (authorization?.finish === undefined) return;
  await authorization.finish(requestWritten ? 'commit' : 'release');
  if (!requestWritten) advanceCall(res, unauthorized);
}

/** Largest body of a failed answer that callers get, and largest headers beside it, bytes. */
const MOST_BYTES = 4_096;
/** Only the gateway asks for money, so the terms of a backend are not shown. */
const PAYMENT_REQUIRED_STATUS = 402;
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads a failed answer and lets go of its connection. Undefined: the status is 402 or below 400,
 * or there is no whole JSON body within the bound. Never rejects.
 */
export async function toldByBackend(answer: BackendAnswer): Promise<ToldByBackend | undefined> {
  const { status, whole } = answer;
  const {
    'content-type': type = '',
    'content-encoding': encoding,
    'content-length': length = '0',
    'cache-control': _caching,
    ...others
  } = relayedHeaders(answer.headers, { free: false, status });
  const isTold = status >= 400 && status !== PAYMENT_REQUIRED_STATUS && isJsonType(type) && !isEncoded(encoding);
  if (!isTold || Number(length) > MOST_BYTES) {
    answer.body.destroy();
    return undefined;
  }
  try {
    const bytes = whole ?? (await readBounded(answer.body));
    if (bytes === undefined || bytes.byteLength > MOST_BYTES) return undefined;
    const body = JSON.parse(UTF_8.decode(bytes)) as Json;
    const size = JSON.stringify(others).length;
    return size > '{}'.length && size <= MOST_BYTES ? { status, headers: others, body } : { status, body };
  } catch {
    return undefined;
  }
}

/** Undefined: the body is longer than MOST_BYTES. */
async function readBounded(body: Readable): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += (chunk as Uint8Array).byteLength;
    if (size > MOST_BYTES) return undefined;
    chunks.push(chunk as Uint8Array);
  }
  return Buffer.concat(chunks);
}

/** The parts of a call that its request is made of. */
type Requesting = Pick<PreparedCall, 'request' | 'requestId' | 'trace' | 'channel' | 'inPlace'> & {
  readonly resource: Pick<PreparedCall['resource'], 'id'>;
};

/** `paid`: the payment of the call; undefined for a free one. */
export function requestToBackend(
  call: Requesting,
  paid: PaymentRecord | undefined,
  contextOf?: PaymentContext,
): BackendRequest {
  const { request, requestId, trace, channel, resource } = call;
  const conditions = conditionsOf(call, paid);
  const headers = backendHeaders({
    configured: request.headers,
    caller: conditions === undefined ? request.callerHeaders : { ...request.callerHeaders, ...conditions },
    requestId,
    protocol: protocolOf(channel),
    resourceId: resource.id,
    ...(trace.traceparent === undefined ? {} : { traceparent: trace.traceparent }),
    ...(trace.tracestate === undefined ? {} : { tracestate: trace.tracestate }),
    ...(paid === undefined ? {} : toldOfPayment(paid, requestId, contextOf)),
  });
  return { ...request, headers };
}

/** The preconditions and ranges of a free call in place; undefined: none. */
export function conditionsOf(
  { inPlace }: Pick<PreparedCall, 'inPlace'>,
  paid: PaymentRecord | undefined,
): Readonly<Record<string, string>> | undefined {
  if (paid !== undefined || inPlace === undefined) return undefined;
  return Object.keys(inPlace.conditions).length === 0 ? undefined : inPlace.conditions;
}

/** For the caller of a free resource whose mandate is used and who has no answer. */
export const MANDATE_USED =
  'The answer of the merchant backend was not delivered, and the mandate of this call is used. Try again with another mandate.';

const REFUNDED = 'What stays undelivered is refunded by the merchant.';
const TOO_LARGE_ANYWHERE = { why: 'its answer is too large to be sent, so the merchant refunds it.' };
const TOO_LARGE_HERE = {
  why: `its answer is too large for this protocol. Send the same call with the same payment over HTTP. ${REFUNDED}`,
};
const NOT_REPEATED = 'this operation cannot be repeated safely, so the merchant refunds it.';

/** Client errors that can pass by themselves: too slow, too early, too many. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 425, 429]);

/**
 * Records the failure and returns the error for the caller. After a settlement it is always
 * BACKEND_ERROR, and retryable exactly when the same proof can collect later.
 */
export async function backendFailed(
  call: FundedCall,
  deliveries: DeliveryRecorder,
  failed: WorkFailure & Pick<Undelivered, 'sent'> & { readonly told?: ToldByBackend | undefined },
): Promise<GatewayError> {
  const { journal, resource, funding } = call;
  const { requestWritten, sent, told } = failed;
  const paid = funding.kind === 'paid';
  const { code, details: why, durationMs, cause } = recordFailure(call, failed, paid);
  const details = told === undefined ? why : { ...why, backend: told };
  if (!paid) {
    journal.flush();
    // The backend may have done the work, so the mandate is used, and the same request would be
    // refused for it.
    if (call.authorization !== undefined && requestWritten)
      return new GatewayError(code, { message: MANDATE_USED, retryable: false, details, cause });
    const retryable = code === 'BACKEND_TIMEOUT' || (resource.backend.method === 'GET' && mayPass(failed.status));
    return new GatewayError(code, { retryable, details, cause });
  }
  const { record, lease } = funding;
  // A repetition would be too large again, and cost another execution.
  const tooLarge = failed.reason === TOO_LARGE;
  const repeatable = isRepeatable(resource.backend) && !tooLarge;
  await deliveries.undelivered(record, {
    requestId: call.requestId,
    callId: call.callId,
    backendStatus: failed.status,
    durationMs,
    journal,
    lease,
    failure: { code: cause.code, path: resource.backend.path },
    requestWritten,
    repeatable,
    answer: undefined,
    sent,
  });
  const elsewhere = call.responseWriter.maxAnswerBytes < resource.backend.maxResponseBytes;
  const notAgain = tooLarge ? (elsewhere ? TOO_LARGE_HERE : TOO_LARGE_ANYWHERE) : {};
  return undeliveredError(record, { retryable: repeatable || !requestWritten, ...notAgain, details, cause });
}

/**
 * Records the failure of a call that would have been paid after its answer (contract 4.7) and
 * returns its error: nothing was taken, and the same proof begins anew.
 */
export function failedUnpaid(call: ProvenCall, failed: WorkFailure): GatewayError {
  const { code, details, cause } = recordFailure(call, failed, false);
  call.journal.flush();
  const { status, ...told } = details;
  const reason = status === undefined || 'reason' in told ? {} : { reason: statusClass(status) };
  // A repetition is in vain where the answer is too large. The caller is told only the class of a
  // status: the absence of a thing may be the sold information.
  const retryable = failed.reason !== TOO_LARGE && (failed.status === 0 || failed.status >= 500);
  const taken = 'The merchant backend did not deliver, and no payment was taken.';
  const tooLarge = failed.reason === TOO_LARGE ? ' Its answer is too large to be kept.' : '';
  const message = `${taken}${retryable ? ' The same payment can be sent again.' : tooLarge}`;
  return new GatewayError(code, { message, retryable, details: { ...told, ...reason }, cause });
}

/** Records `backend.failed`, and returns the caller's part of it in the words of contract 1.2. */
function recordFailure(
  call: Pick<FundedCall, 'journal' | 'startedAt'> & { readonly resource: Pick<Resource, 'backend'> },
  failed: WorkFailure,
  paid: boolean,
) {
  const code = failed.reason === 'timeout' && !paid ? 'BACKEND_TIMEOUT' : 'BACKEND_ERROR';
  const status = failed.status === 0 ? {} : { status: failed.status };
  const reason = failed.reason === undefined ? {} : { reason: wireReason(failed.reason) };
  const durationMs = elapsedMs(call);
  call.journal.record('backend.failed', { status: 'error', durationMs, data: { code, ...status, ...reason } });
  const timeoutMs = failed.reason === 'timeout' ? { timeoutMs: call.resource.backend.timeoutMs } : {};
  const cause = new Undeliverable(failureCode(failed), call.resource.backend, failed.cause);
  return { code, durationMs, details: { ...status, ...reason, ...timeoutMs }, cause } as const;
}

/** The error of a call that is paid and not delivered. `retryable`: the same proof can collect. */
export function undeliveredError(
  record: PaymentRecord,
  {
    retryable,
    why = NOT_REPEATED,
    details,
    headers = {},
    cause,
  }: {
    readonly retryable: boolean;
    /** Why the call is not retryable. */
    readonly why?: string;
    readonly details: ErrorDetails;
    readonly headers?: Readonly<Record<string, string>>;
    readonly cause?: unknown;
  },
): GatewayError {
  // ISO 8601: until then the same proof can collect the answer that it paid for.
  const until = new Date((record.settledAt ?? record.changedAt) + RETRY_WINDOW_MS).toISOString();
  const { status = 0 } = details;
  const stays = status >= 300 && status <= 499 && !PASSING_STATUSES.has(status);
  const what = `You have paid, and the merchant backend ${stays ? `answered ${status}` : 'did not deliver'}.`;
  const again = stays
    ? `${what} Another call may not change that. Do not sign a new payment: the same one collects until ${until}. ${REFUNDED}`
    : `${what} Do not sign a new payment: send the same call with the same payment until ${until}.`;
  return new GatewayError('BACKEND_ERROR', {
    message: retryable ? again : `${what} Do not sign a new payment: ${why}`,
    retryable,
    details: {
      ...details,
      state: 'undelivered',
      payment: paymentDetails(record),
      ...(retryable ? { retryUntil: until } : {}),
    },
    headers,
    cause,
  });
}

/** Whether the same request may get another answer later; a redirect and a 404 stay. */
function mayPass(status: number): boolean {
  return status !== 404 && !(status >= 300 && status <= 399);
}
