import type { RequestHandler } from 'express';
import { advanceCall, callAt, type FundedCall } from '../call.ts';
import { GatewayError } from '../errors.ts';
import { backendHeaders } from '../merchant/headers.ts';
import { classify } from '../merchant/outcome.ts';
import { BackendError, type BackendRequest, type Exchange } from '../merchant/types.ts';
import type { DeliveryDesk } from '../payments/delivery.ts';
import { backendIdempotencyKey } from '../payments/terms.ts';
import { elapsedMs } from './elapsed.ts';
import { repeatable, retryUntil } from './repeat.ts';

/** Why nothing can be delivered, in the words of CONTRACT 1.2. */
interface BackendFailed {
  readonly reason?: string;
  /** 0 when no answer came. */
  readonly status: number;
  readonly requestWritten: boolean;
  readonly cause?: unknown;
}

/** Sends the prepared request to the merchant. A free call ends with its caller; a paid one runs to its end. */
export function forward(exchange: Exchange, desk: DeliveryDesk): RequestHandler {
  return async function forwardLayer(_req, res, next) {
    const call = callAt(res, 'funded');
    const { timeoutMs, maxResponseBytes, relayStatuses } = call.resource.backend;
    const free = call.funding.kind === 'free';
    const limits = { timeoutMs, maxResponseBytes, ...(free ? { signal: call.left } : {}) };
    try {
      const answer = await exchange(requestToMerchant(call), limits);
      const outcome = classify(answer.status, free ? relayStatuses : []);
      if (outcome.kind === 'deliver') {
        advanceCall(res, { ...call, stage: 'answered', answer });
        next();
        return;
      }
      // Nobody reads this answer: its socket goes back at once.
      answer.body.destroy();
      const reason = outcome.kind === 'redirect' ? { reason: 'redirect_not_followed' } : {};
      throw await backendFailed(call, desk, { ...reason, status: answer.status, requestWritten: true });
    } catch (thrown) {
      if (!(thrown instanceof BackendError)) throw thrown;
      const { reason, requestWritten } = thrown;
      throw await backendFailed(call, desk, { reason, status: 0, requestWritten, cause: thrown });
    }
  };
}

function requestToMerchant(call: FundedCall): BackendRequest {
  const { request, requestId, trace, channel, resource, funding } = call;
  const paid = funding.kind === 'paid' ? funding.record : undefined;
  const headers = backendHeaders({
    configured: request.headers,
    requestId,
    protocol: channel,
    resourceId: resource.id,
    ...(trace.traceparent === undefined ? {} : { traceparent: trace.traceparent }),
    ...(trace.tracestate === undefined ? {} : { tracestate: trace.tracestate }),
    ...(paid === undefined
      ? {}
      : { payer: paid.payer, receiptId: paid.receiptId, idempotencyKey: backendIdempotencyKey(paid.payId) }),
  });
  return { ...request, headers };
}

/**
 * Records the failure and says what the caller is told. After a settlement it is always BACKEND_ERROR, and retryable exactly when
 * the same proof can collect later.
 */
export async function backendFailed(
  call: FundedCall,
  desk: DeliveryDesk,
  failed: BackendFailed,
): Promise<GatewayError> {
  const { journal, resource, funding } = call;
  const paid = funding.kind === 'paid';
  const code = failed.reason === 'timeout' && !paid ? 'BACKEND_TIMEOUT' : 'BACKEND_ERROR';
  const status = failed.status === 0 ? {} : { status: failed.status };
  const reason = failed.reason === undefined ? {} : { reason: wireReason(failed.reason) };
  const durationMs = elapsedMs(call);
  journal.record('backend.failed', { status: 'error', durationMs, data: { code, ...status, ...reason } });
  const timeoutMs = failed.reason === 'timeout' ? { timeoutMs: resource.backend.timeoutMs } : {};
  const details = { ...status, ...reason, ...timeoutMs };
  if (!paid) {
    journal.flush();
    const retryable = code === 'BACKEND_TIMEOUT' || resource.backend.method === 'GET';
    return new GatewayError(code, { retryable, details, cause: failed.cause });
  }
  const { record } = funding;
  const { requestWritten } = failed;
  const facts = { requestId: call.requestId, backendStatus: failed.status, durationMs, journal };
  await desk.undelivered(record, { ...facts, failure: code, requestWritten });
  const retryable = repeatable(resource) || !requestWritten;
  return new GatewayError(code, {
    retryable,
    details: {
      ...details,
      state: 'undelivered',
      payment: {
        status: 'settled',
        provider: 'x402',
        amount: record.amount,
        currency: record.currency,
        network: record.network,
        externalReference: record.transaction ?? '',
        payer: record.payer,
      },
      ...(retryable ? { retryUntil: retryUntil(record) } : {}),
    },
    cause: failed.cause,
  });
}

/** The closed words of CONTRACT 1.2: a merchant that cannot be reached and a broken connection look the same from outside. */
function wireReason(reason: string): string {
  return reason === 'unreachable' ? 'transport' : reason;
}
