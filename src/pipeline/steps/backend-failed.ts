import { type ErrorDetails, GatewayError } from '../../errors.ts';
import type { DeliveryRecorder } from '../../payments/delivery/delivery-recorder.ts';
import type { PaymentRecord } from '../../payments/ledger/ledger.ts';
import { RETRY_WINDOW_MS } from '../../payments/ledger/transitions.ts';
import { paymentDetails } from '../../payments/x402/wire/payment-response.ts';
import type { Resource } from '../../resources/resource.ts';
import { elapsedMs } from '../../time/time.ts';
import type { FundedCall } from '../call.ts';

/**
 * Whether the merchant may be sent this resource's request a second time (contract 4.3, row
 * "undelivered").
 */
export function isRetrySafe(resource: {
  readonly backend: Pick<Resource['backend'], 'method' | 'idempotent'>;
}): boolean {
  const { method, idempotent } = resource.backend;
  return idempotent || method === 'GET' || method === 'PUT' || method === 'DELETE';
}

/** Until when the same proof can collect what it paid for, ISO 8601. */
export function retryUntil(record: PaymentRecord): string {
  return new Date((record.settledAt ?? record.changedAt) + RETRY_WINDOW_MS).toISOString();
}

/** Why nothing can be delivered, in the words of contract 1.2. */
interface BackendFailed {
  readonly reason?: string;
  /** 0 when no answer came. */
  readonly status: number;
  readonly requestWritten: boolean;
  readonly cause?: unknown;
}

/**
 * Records the failure and says what the caller is told. After a settlement it is always
 * BACKEND_ERROR, and retryable exactly when the same proof can collect later.
 */
export async function backendFailed(
  call: FundedCall,
  deliveries: DeliveryRecorder,
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
    // The merchant may have done the work, so the mandate is used, and the same request would be
    // refused for it.
    if (call.authorization !== undefined && failed.requestWritten)
      return new GatewayError(code, { message: MANDATE_USED, retryable: false, details, cause: failed.cause });
    const retryable = code === 'BACKEND_TIMEOUT' || (resource.backend.method === 'GET' && mayPass(failed.status));
    return new GatewayError(code, { retryable, details, cause: failed.cause });
  }
  const { record, lease } = funding;
  const { requestWritten } = failed;
  const again = isRetrySafe(resource);
  const facts = {
    requestId: call.requestId,
    callId: call.callId,
    backendStatus: failed.status,
    durationMs,
    journal,
    lease,
  };
  await deliveries.undelivered(record, {
    ...facts,
    failure: code,
    requestWritten,
    repeatable: again,
    answer: undefined,
  });
  const retryable = again || !requestWritten;
  return undeliveredError(record, { retryable, details, cause: failed.cause });
}

/**
 * Whether the same request may be answered otherwise later. What is elsewhere, or nowhere, stays
 * there.
 */
function mayPass(status: number): boolean {
  return status !== 404 && !(status >= 300 && status <= 399);
}

/** What the caller of a free resource is told when his mandate is used and he has nothing. */
export const MANDATE_USED =
  'The answer of the merchant backend was not delivered, and the mandate of this call is used. Try again with another mandate.';

/**
 * What the buyer is told of a call that is paid and not delivered (contract 4.3). `retryable`: the
 * same proof can collect it.
 */
export function undeliveredError(
  record: PaymentRecord,
  {
    retryable,
    details,
    cause,
  }: { readonly retryable: boolean; readonly details: ErrorDetails; readonly cause?: unknown },
): GatewayError {
  return new GatewayError('BACKEND_ERROR', {
    message: paidAndNot(retryable ? retryUntil(record) : undefined),
    retryable,
    details: {
      ...details,
      state: 'undelivered',
      payment: paymentDetails(record),
      ...(retryable ? { retryUntil: retryUntil(record) } : {}),
    },
    cause,
  });
}

/**
 * The closed words of contract 1.2: a merchant that cannot be reached and a broken connection look
 * the same from outside.
 */
function wireReason(reason: string): string {
  return reason === 'unreachable' ? 'transport' : reason;
}

/**
 * What the buyer of an undelivered answer must know: `until` is ISO 8601, undefined when nothing
 * can be collected.
 */
export function paidAndNot(until: string | undefined): string {
  const what = 'You have paid, and the merchant backend did not deliver. Do not sign a new payment:';
  return until === undefined
    ? `${what} this operation cannot be repeated safely, so ask the merchant.`
    : `${what} send the same call with the same payment until ${until}.`;
}
