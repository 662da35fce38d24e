/**
 * What happens when the backend does not deliver: the failure is recorded, and the caller learns
 * whether the same call may be sent again. `forward` and `deliver` use it, `settle` for copies.
 */

import { failureCode, statusClass, TOO_LARGE, Undeliverable, wireReason } from '../../backend/exchange.ts';
import { type ErrorDetails, GatewayError, type ToldByBackend } from '../../errors.ts';
import type { DeliveryRecorder, Undelivered } from '../../payments/delivery/delivery-recorder.ts';
import type { PaymentRecord } from '../../payments/ledger/ledger.ts';
import { RETRY_WINDOW_MS } from '../../payments/ledger/table.ts';
import type { WorkFailure } from '../../payments/settlement/settlement-request.ts';
import { paymentDetails } from '../../payments/x402/wire/payment-response.ts';
import { isRepeatable } from '../../resources/repeatable.ts';
import type { Resource } from '../../resources/resource.ts';
import { elapsedMs } from '../../time/time.ts';
import type { FundedCall, ProvenCall } from '../call.ts';

/** For the caller of a free resource whose mandate is used and who has no answer. */
export const MANDATE_USED =
  'The answer of the merchant backend was not delivered, and the mandate of this call is used. Try again with another mandate.';

const REFUNDED = 'What stays undelivered is refunded by the merchant.';
const TOO_LARGE_ANYWHERE = { why: 'its answer is too large to be sent, so the merchant refunds it.' };
const TOO_LARGE_HERE = {
  why: `its answer is too large for this protocol. Send the same call with the same payment over HTTP. ${REFUNDED}`,
};
const NOT_REPEATED = 'this operation cannot be repeated safely, so the merchant refunds it.';

/** Client errors that another call may not meet: too slow, too early, too many. */
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
 * The same for a call that would have been paid after its answer (4.7): nothing was taken, and the
 * same proof begins anew.
 */
export function failedUnpaid(call: ProvenCall, failed: WorkFailure): GatewayError {
  const { code, details, cause } = recordFailure(call, failed, false);
  call.journal.flush();
  const { status, ...told } = details;
  const reason = status === undefined || 'reason' in told ? {} : { reason: statusClass(status) };
  // A repetition would be worked in vain again where the answer is too large. Of a status its class
  // alone is told: that a thing is not there may be what is sold.
  const retryable = failed.reason !== TOO_LARGE && (failed.status === 0 || failed.status >= 500);
  const taken = 'The merchant backend did not deliver, and no payment was taken.';
  const tooLarge = failed.reason === TOO_LARGE ? ' Its answer is too large to be kept.' : '';
  const message = `${taken}${retryable ? ' The same payment can be sent again.' : tooLarge}`;
  return new GatewayError(code, { message, retryable, details: { ...told, ...reason }, cause });
}

/** Records `backend.failed`; what the caller learns of it, in the words of contract 1.2. */
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
    /** Why it is not. */
    readonly why?: string;
    readonly details: ErrorDetails;
    readonly headers?: Readonly<Record<string, string>>;
    readonly cause?: unknown;
  },
): GatewayError {
  // ISO 8601: until then the same proof can collect what it paid for.
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
