/**
 * Reserves and settles the payment of a call, and answers every result that is no delivery
 * (contract 4.2 and 4.3). Only a call whose money moved goes on to `forward`.
 */

import type { Request, RequestHandler, Response } from 'express';
import type { ReserveBackend } from '../../backend/backend-exchange.ts';
import { GatewayError } from '../../errors.ts';
import type { Journal } from '../../events/journal.ts';
import type { MandateService } from '../../mandates/ap2/verify.ts';
import { fetchAnswer } from '../../payments/delivery/fetch-answer.ts';
import type { PurchaseSigner } from '../../payments/delivery/purchase-signer.ts';
import type { KeptAnswer, PaymentRecord } from '../../payments/ledger/ledger.ts';
import type { Settler } from '../../payments/settlement/settle.ts';
import type {
  Paid,
  PostponedFor,
  SettlementRequest,
  SettlementResult,
  WorkFirst,
} from '../../payments/settlement/settlement-request.ts';
import { newToken, type PaymentContext, paymentTerms } from '../../payments/settlement/terms.ts';
import { proofDigest } from '../../payments/x402/verify/verify.ts';
import { paymentDetails, pendingResponse, settledResponse } from '../../payments/x402/wire/payment-response.ts';
import { isRepeatable } from '../../resources/resource.ts';
import type { ClientOf } from '../../server/limits/client-address.ts';
import type { NoteProof } from '../../server/limits/load-shedder.ts';
import { elapsedMs } from '../../time/time.ts';
import { advanceCall, callAt, type PaymentAnnotations, type ProvenCall, type Relayed } from '../call.ts';
import { type Collector, served, throwStorageError } from '../collecting.ts';
import { type PaymentMandate, paymentMandate } from './authorize.ts';
import { requirePayment, type Selling } from './challenge.ts';
import { asAnswer, signDelivery } from './deliver.ts';
import { failedUnpaid, requestToBackend, undeliveredError } from './forward.ts';

/** The facts and connections that a settlement asks of the process. */
interface SettlementGate {
  /** Whether the gateway may still start to move money; asked again right before it does. */
  accepting(): boolean;
  /** Holds an open connection to the backend: no money moves without one. */
  readonly reserveBackend: ReserveBackend;
  /** The network that a request counts against. */
  readonly networkOf: ClientOf;
  readonly noteProof: NoteProof;
  /** A quote was bought, so it counts no more. */
  quoteBought(req: Request): void;
  /** Undefined: the backend gets no JWT about payments. */
  readonly contextOf?: PaymentContext | undefined;
}

/** The parts of one call that its settlement works with. */
interface PaidPurchase {
  readonly call: ProvenCall;
  readonly mandate: PaymentMandate;
  readonly request: SettlementRequest;
}

export function settle(
  selling: Selling,
  settler: Settler,
  gate: SettlementGate,
  { asBought }: Pick<Collector, 'asBought'>,
  mandates?: MandateService,
  signer?: PurchaseSigner,
): RequestHandler {
  return async function settleMiddleware(req, res, next) {
    const shown = callAt(res, 'proven', 'funded');
    if (shown.stage === 'funded') {
      next();
      return;
    }
    let purchase = purchaseOf(req, shown, gate, mandates);
    let result = await settler.settle(purchase.request).catch(throwStorageError);
    // The operation may have another method by now; the method is a part of each purchase.
    const bought = shown.collecting === undefined && isAnothers(result) ? await asBought(shown) : undefined;
    if (bought !== undefined) {
      purchase = purchaseOf(req, bought, gate, mandates);
      result = await settler.settle(purchase.request).catch(throwStorageError);
    }
    const { call } = purchase;
    if (result.kind === 'paid') {
      gate.noteProof(req, 'bought');
      const { pricing } = call.resource;
      const isQuoted = pricing.type === 'fixed' && pricing.by?.kind === 'quote';
      if (isQuoted && result.record.fence === 1) gate.quoteBought(req);
      fund(res, purchase, result);
      next();
      return;
    }
    if (result.kind === 'refused' && call.collecting !== undefined) {
      const { before, refuse } = call.collecting;
      // A payment that came to nothing is a 402 where the operation is sold today.
      if (result.owed.phase === 'verify' || served(before) === undefined) {
        advanceCall(res, before);
        refuse({ kind: 'none' });
        return;
      }
    }
    if (result.kind === 'refused') gate.noteProof(req, 'refused');
    const unauthorized = purchase.mandate.failureOf(result);
    if (unauthorized !== undefined) throw unauthorized;
    if (result.kind === 'refused') {
      const { journal } = purchase.request;
      // A collecting call has no offer, and a quote that was shown ends with its 402.
      const present = call.offer ?? (await selling.offerAnew(call, req));
      const offer = selling.offerTo(req, call.resource.id, present, result.owed);
      requirePayment({ ...call, journal }, offer, result.owed, mandates);
    } else if (result.kind === 'replayed') await replay(purchase, result, signer);
    else if (result.kind === 'unworked') {
      const { relayed } = result.failure;
      if (relayed === undefined) throw failedUnpaid({ ...call, journal: purchase.request.journal }, result.failure);
      await relayUnpaid(purchase, relayed);
    } else {
      const annotations = annotationsOfFailure(purchase, result);
      if (annotations !== undefined) advanceCall(res, { ...call, annotations });
      throw unsettled(result);
    }
  };
}

/** Whether the proof has a record of another purchase than the one that was asked for. */
function isAnothers(result: SettlementResult): boolean {
  return result.kind === 'conflict' || (result.kind === 'spent' && result.state === 'used');
}

function purchaseOf(
  req: Request,
  call: ProvenCall,
  gate: SettlementGate,
  mandates: MandateService | undefined,
): PaidPurchase {
  const mandate = paymentMandate(call, mandates);
  const proof = proofDigest(call.payment);
  const request: SettlementRequest = {
    terms: { ...paymentTerms(call, call.agreed), ...mandate.terms, proofDigest: proof },
    token: newToken(call),
    refusal: call.refusal,
    proof,
    left: call.left,
    journal: mandate.journal,
    repeatable: isRepeatable(call.resource.backend),
    backendTimeoutMs: call.resource.backend.timeoutMs,
    elapsedMs: () => elapsedMs(call),
    gateOpen: () => gate.accepting(),
    reserveBackend: gate.reserveBackend,
    ...workFirst(req, call, mandate.journal, gate),
  };
  return { call, mandate, request };
}

/** The work of the backend before the money of a call moves, where that is agreed. */
function workFirst(
  req: Request,
  call: ProvenCall,
  journal: Journal,
  { networkOf, contextOf }: SettlementGate,
): Pick<SettlementRequest, 'work'> {
  const { backend } = call.resource;
  const { leastSeconds } = call.agreed;
  if (leastSeconds === undefined) return {};
  const work: WorkFirst = {
    network: networkOf(req),
    leastSeconds,
    answerOf: call.token?.answerOf,
    async call(record, held) {
      const worked = await fetchAnswer(held.exchange, requestToBackend(call, record, contextOf), backend);
      const answer = worked.kind === 'answer' ? worked.answer : worked.failure.relayed;
      if (answer === undefined) return worked;
      const data = { status: answer.status };
      journal.record('backend.called', { status: 'ok', durationMs: elapsedMs(call), data });
      return worked;
    },
  };
  return { work };
}

function fund(res: Response, { call, mandate }: PaidPurchase, { record, lease, kept, held }: Paid): void {
  try {
    const {
      payment: _proof,
      agreed: _agreed,
      offer: _offer,
      refusal: _refusal,
      collecting: _collecting,
      token: _token,
      mandated: _mandated,
      ...prepared
    } = call;
    const funding = { kind: 'paid', record, lease, held, response: settledResponse(record, call.requestId) } as const;
    const authorization = mandate.usedFor(record);
    const funded = { ...prepared, funding, ...(authorization === undefined ? {} : { authorization }) };
    if (kept === undefined) advanceCall(res, { ...funded, stage: 'funded' });
    else advanceCall(res, { ...funded, stage: 'answered', answer: asAnswer(kept), keptBefore: true });
  } catch (bug) {
    held?.release();
    throw bug;
  }
}

/** The answer that was delivered before, with the annotations that it was delivered with. */
async function replay(
  purchase: PaidPurchase,
  { record, kept, joined }: Extract<SettlementResult, { kind: 'replayed' }>,
  signer: PurchaseSigner | undefined,
): Promise<void> {
  const { journal, responseWriter, input } = purchase.call;
  journal.flush();
  const annotations = annotationsOfSettled(purchase, record, record.requestId);
  const answer = asAnswer(kept);
  const signed = signer && signDelivery(signer, record, annotations.payment, input, answer);
  const options = { ...annotations, ...signed?.annotations, replayed: !joined };
  unlessBusy(await responseWriter.relay(answer, options));
}

/** The backend's answer to a call that the merchant takes no payment for. */
async function relayUnpaid({ call, request }: PaidPurchase, relayed: KeptAnswer): Promise<void> {
  request.journal.flush();
  unlessBusy(await call.responseWriter.relay(asAnswer(relayed), {}));
}

function unlessBusy({ kind }: Relayed): void {
  if (kind === 'busy') throw new GatewayError('GATEWAY_BUSY');
}

/** The statements of a failure after money moved, or may have moved. */
function annotationsOfFailure(purchase: PaidPurchase, result: SettlementResult): PaymentAnnotations | undefined {
  const { requestId } = purchase.call;
  if (result.kind === 'uncertain') return { payment: pendingResponse(result.record, result.transaction, requestId) };
  return result.kind === 'failed' ? annotationsOfSettled(purchase, result.record, requestId) : undefined;
}

function annotationsOfSettled({ mandate }: PaidPurchase, record: PaymentRecord, requestId: string) {
  const receipt = mandate.usedFor(record)?.receipt;
  return {
    payment: settledResponse(record, requestId),
    ...(receipt === undefined ? {} : { mandateReceipt: receipt }),
  };
}

/** For the bearer of a spent proof; nothing about a purchase that may be another buyer's. */
const SPENT = {
  used: 'This payment proof belongs to another call. If that call was not delivered, send it again as it was.',
  delivered:
    'This payment proof has bought its answer, which was delivered. To buy again, call without a proof and pay anew.',
  undelivered:
    'This payment was taken and its answer not delivered as a whole. The operation is not run again for it, because it cannot be repeated safely or was sent in part too often: the merchant refunds it.',
  refundDue: 'This payment was taken and its answer not delivered; the merchant owes a refund.',
  refunding: 'This payment was taken and its answer not delivered; the merchant is sending it back.',
  refunded: 'This payment was taken, its answer not delivered, and the merchant has sent it back.',
} as const;

const GUARDED =
  'This payment was taken and its answer not delivered. Send the same call as it was paid: with its Idempotency-Key, or else with the ' +
  'whole payment proof, extensions included.';

/** The settlement would fail on the gateway's side, so it is not begun. */
const POSTPONED: Readonly<Record<PostponedFor, string>> = {
  relayer_unfunded:
    'Payments cannot be sent just now, so none was taken. Send the same request again, with the same proof.',
  backend_unreachable:
    'The merchant backend cannot be reached just now, so no payment was taken. Send the same request again, with the same proof.',
};

/** The answers of the table in contract 4.3 that are neither a delivery nor a 402. */
function unsettled(
  result: Exclude<SettlementResult, { kind: 'paid' | 'refused' | 'replayed' | 'unworked' }>,
): GatewayError {
  switch (result.kind) {
    case 'in_flight':
      return new GatewayError('PAYMENT_REPLAYED', {
        message: 'Another call with this proof is still running.',
        retryable: true,
        details: { state: 'in_flight' },
        headers: { 'retry-after': '1' },
      });
    case 'failed':
      return undeliveredError(result.record, {
        retryable: result.retryable,
        details: {},
        headers: { 'retry-after': '1' },
      });
    case 'conflict':
      return new GatewayError('IDEMPOTENCY_CONFLICT', {
        message: 'This key and proof have bought something else. Send the call again as it was.',
      });
    case 'spent':
      return new GatewayError('PAYMENT_REPLAYED', {
        message: result.guarded === true ? GUARDED : SPENT[result.state],
        details: {
          state: result.state,
          // A purchase of another call with this authorization is not shown here.
          ...(result.record === undefined || result.state === 'used' ? {} : { payment: paymentDetails(result.record) }),
        },
      });
    case 'uncertain':
      return new GatewayError('PAYMENT_SETTLEMENT_FAILED', {
        details: {
          settlementUncertain: true,
          ...(result.transaction === undefined ? {} : { transactionHash: result.transaction }),
        },
        headers: { 'retry-after': '2' },
        cause: result.cause,
      });
    case 'mandate_used':
      throw new Error('a mandate was used up by a call that brought none');
    case 'unavailable':
      return new GatewayError('PAYMENT_PROVIDER_UNAVAILABLE', { cause: result.cause });
    case 'postponed':
      return new GatewayError('GATEWAY_BUSY', {
        message: POSTPONED[result.reason],
        details: { reason: result.reason },
        cause: result.cause,
      });
    case 'crowded':
      return new GatewayError('GATEWAY_BUSY', {
        message: 'Too many settlements are under way, of this payer or of all. Send the same request again.',
      });
    case 'gone':
      // No client reads it; log and metrics still get a code.
      return new GatewayError('GATEWAY_BUSY', { message: 'The caller left before its payment was begun.' });
    case 'gate_closed':
      return new GatewayError('GATEWAY_BUSY');
  }
}
