import type { RequestHandler, Response } from 'express';
import type { ReserveBackend } from '../../backend/types.ts';
import { GatewayError } from '../../errors.ts';
import type { MandateService } from '../../mandates/mandate-service.ts';
import type { PaymentRecord } from '../../payments/ledger/ledger.ts';
import type { Settler } from '../../payments/settlement/settle.ts';
import type { Paid, PostponedFor, SettlementResult } from '../../payments/settlement/settlement-request.ts';
import type { ClaimEnd } from '../../payments/settlement/task-claims.ts';
import { newToken, paymentTerms } from '../../payments/settlement/terms.ts';
import { proofDigest } from '../../payments/x402/verify/verify.ts';
import type { Offers } from '../../payments/x402/wire/offers.ts';
import { paymentDetails, pendingResponse, settledResponse } from '../../payments/x402/wire/payment-response.ts';
import { elapsedMs } from '../../time/time.ts';
import { advanceCall, callAt, type PaymentAnnotations, type ProvenCall } from '../call.ts';
import { isRetrySafe, paidAndNot, retryUntil } from '../steps/backend-failed.ts';
import { asAnswer } from '../steps/capture-answer.ts';
import { notCollected } from '../steps/collecting.ts';
import { offerOf, requirePayment } from '../steps/payment-required.ts';
import { throwStorageError } from '../steps/storage-error.ts';
import { failedForMandate, mandateOf, usedMandate } from './mandate-of-sale.ts';

/** Whether the gateway may still start to move money; asked again immediately before it does. */
interface SettlementGate {
  accepting(): boolean;
  /** A way to the merchant that is open: no money moves without one. */
  readonly reserveBackend: ReserveBackend;
}

/**
 * Reserves the authorization, settles it, and lets only a call whose money moved go on to the
 * merchant (contract 4.2 and 4.3).
 */
export function settle(
  offers: Offers,
  settler: Settler,
  gate: SettlementGate,
  mandates?: MandateService,
): RequestHandler {
  return async function settleLayer(_req, res, next) {
    const call = callAt(res, 'proven', 'funded');
    if (call.stage === 'funded') {
      next();
      return;
    }
    const { collecting } = call;
    const agreed = collecting?.agreed ?? offerOf(offers, call.resource.id);
    const { terms, refusal, journal } = mandateOf(call);
    await call.exclusive?.claim().catch(throwStorageError);
    const sale = await settler
      .take({
        terms: { ...paymentTerms(call, agreed), ...terms },
        token: newToken(call),
        refusal,
        proof: proofDigest(call.payment),
        left: call.left,
        journal,
        repeatable: isRetrySafe(call.resource),
        backendTimeoutMs: call.resource.backend.timeoutMs,
        elapsedMs: () => elapsedMs(call),
        gateOpen: () => gate.accepting(),
        reserveBackend: gate.reserveBackend,
      })
      .catch(async (thrown: unknown) => {
        await call.exclusive?.end('nothing');
        throwStorageError(thrown);
      });
    await call.exclusive?.end(claimEnd(sale));
    if (sale.kind === 'paid') {
      try {
        fund(res, call, sale, mandates);
      } catch (bug) {
        sale.held?.release();
        throw bug;
      }
      next();
      return;
    }
    if (sale.kind === 'refused' && collecting !== undefined) throw notCollected(res, collecting);
    const unauthorized = failedForMandate(call, sale, agreed, mandates);
    if (unauthorized !== undefined) throw unauthorized;
    if (sale.kind === 'refused')
      requirePayment({ ...call, journal }, offerOf(offers, call.resource.id), sale.owed, mandates);
    else if (sale.kind === 'again') await answerAgain(call, sale, mandates);
    else {
      const said = saidOfMoney(call, sale, mandates);
      if (said !== undefined) advanceCall(res, { ...call, said });
      throw unsold(sale);
    }
  };
}

/** What a sale means for what it had claimed. */
function claimEnd(sale: SettlementResult): ClaimEnd {
  switch (sale.kind) {
    case 'paid':
    case 'again':
    case 'uncertain':
    case 'failed':
      return 'kept';
    case 'spent':
      return sale.state === 'used' ? 'nothing' : 'kept';
    case 'refused':
      // The chain showed it worthless. What only the provider refused may run a second time
      // elsewhere.
      return sale.owed.phase === 'settle' ? 'worthless' : 'nothing';
    default:
      return 'nothing';
  }
}

function fund(
  res: Response,
  call: ProvenCall,
  { record, lease, kept, held }: Paid,
  mandates: MandateService | undefined,
): void {
  const { payment: _proof, refusal: _refusal, token: _token, said: _said, mandated: _mandated, ...prepared } = call;
  const funding = { kind: 'paid', record, lease, held, response: settledResponse(record, call.requestId) } as const;
  const authorization = usedMandate(call, record, mandates);
  const funded = { ...prepared, funding, ...(authorization === undefined ? {} : { authorization }) };
  if (kept === undefined) advanceCall(res, { ...funded, stage: 'funded' });
  else advanceCall(res, { ...funded, stage: 'answered', answer: asAnswer(kept), keptBefore: true });
}

/** What a failure has to say after money moved, or may have moved. */
function saidOfMoney(
  call: ProvenCall,
  sale: SettlementResult,
  mandates: MandateService | undefined,
): PaymentAnnotations | undefined {
  if (sale.kind === 'uncertain') return { payment: pendingResponse(sale.record, sale.transaction, call.requestId) };
  return sale.kind === 'failed' ? saidOfSettled(call, sale.record, call.requestId, mandates) : undefined;
}

function saidOfSettled(
  call: ProvenCall,
  record: PaymentRecord,
  requestId: string,
  mandates: MandateService | undefined,
): PaymentAnnotations {
  const authorization = usedMandate(call, record, mandates);
  return {
    payment: settledResponse(record, requestId),
    ...(authorization?.receipt === undefined ? {} : { mandateReceipt: authorization.receipt }),
  };
}

/** The answer that was delivered before, with the words it was delivered with. */
async function answerAgain(
  call: ProvenCall,
  { record, kept, joined }: Extract<SettlementResult, { kind: 'again' }>,
  mandates: MandateService | undefined,
): Promise<void> {
  call.journal.flush();
  await call.responseWriter.relay(asAnswer(kept), {
    ...saidOfSettled(call, record, record.requestId, mandates),
    replayed: !joined,
  });
}

/**
 * What the bearer of a spent proof should know; nothing about a purchase that may be somebody
 * else's.
 */
const SPENT = {
  used: 'This payment proof belongs to another call. If that call was not delivered, send it again as it was.',
  delivered:
    'This payment proof has bought its answer, which was delivered. To buy again, call without a proof and pay anew.',
  undelivered: 'This payment was taken and its answer not delivered; this operation cannot be repeated safely.',
  refundDue: 'This payment was taken and its answer not delivered in time; the merchant owes a refund.',
} as const;

const GUARDED =
  'This payment was taken and its answer not delivered. Send the same call as it was paid: with its Idempotency-Key, or else with the ' +
  'whole payment proof, extensions included.';

/** The sale would fail for us and not for the buyer, so it is not begun. */
const POSTPONED: Readonly<Record<PostponedFor, string>> = {
  relayer_unfunded:
    'Payments cannot be sent just now, so none was taken. Send the same request again, with the same proof.',
  backend_unreachable:
    'The merchant backend cannot be reached just now, so no payment was taken. Send the same request again, with the same proof.',
};

/** The answers of the table in contract 4.3 that are neither a delivery nor a 402. */
function unsold(sale: Exclude<SettlementResult, { kind: 'paid' | 'refused' | 'again' }>): GatewayError {
  switch (sale.kind) {
    case 'in_flight':
      return new GatewayError('PAYMENT_REPLAYED', {
        message: 'Another call with this proof is still running.',
        retryable: true,
        details: { state: 'in_flight' },
        headers: { 'retry-after': '1' },
      });
    case 'failed':
      return new GatewayError('BACKEND_ERROR', {
        message: paidAndNot(sale.retryable ? retryUntil(sale.record) : undefined),
        retryable: sale.retryable,
        details: {
          state: 'undelivered',
          payment: paymentDetails(sale.record),
          ...(sale.retryable ? { retryUntil: retryUntil(sale.record) } : {}),
        },
        headers: { 'retry-after': '1' },
      });
    case 'conflict':
      return new GatewayError('IDEMPOTENCY_CONFLICT', {
        message: 'This key and proof have bought something else. Send the call again as it was.',
      });
    case 'spent':
      return new GatewayError('PAYMENT_REPLAYED', {
        message: sale.guarded === true ? GUARDED : SPENT[sale.state],
        details: {
          state: sale.state,
          // What an authorization bought elsewhere is nobody's business here.
          ...(sale.record === undefined || sale.state === 'used' ? {} : { payment: paymentDetails(sale.record) }),
        },
      });
    case 'uncertain':
      return new GatewayError('PAYMENT_SETTLEMENT_FAILED', {
        details: {
          settlementUncertain: true,
          ...(sale.transaction === undefined ? {} : { transactionHash: sale.transaction }),
        },
        headers: { 'retry-after': '2' },
        cause: sale.cause,
      });
    case 'mandate_used':
      throw new Error('a mandate was used up by a call that brought none');
    case 'unavailable':
      return new GatewayError('PAYMENT_PROVIDER_UNAVAILABLE', { headers: { 'retry-after': '1' }, cause: sale.cause });
    case 'postponed':
      return new GatewayError('GATEWAY_BUSY', {
        message: POSTPONED[sale.reason],
        details: { reason: sale.reason },
        headers: { 'retry-after': '1' },
        cause: sale.cause,
      });
    case 'crowded':
      return new GatewayError('GATEWAY_BUSY', {
        message: 'Too many settlements are under way, of this payer or of all. Send the same request again.',
        headers: { 'retry-after': '1' },
      });
    case 'gone':
      // No client reads it; the log and the metrics still want a word for what happened.
      return new GatewayError('GATEWAY_BUSY', { message: 'The caller left before its payment was begun.' });
    case 'gate_closed':
      return new GatewayError('GATEWAY_BUSY', { headers: { 'retry-after': '1' } });
  }
}
