/**
 * Answers 402 with a fresh challenge: for a call without a proof in `challenge`, which stands
 * behind `validate`; for a refused proof from `verify` and `settle`.
 */

import type { Request, RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import type { JsonObject } from '../../json/json.ts';
import type { MandateService } from '../../mandates/ap2/verify.ts';
import { type InputPrice, priceOfInput } from '../../payments/pricing/by-input.ts';
import { SafeToRechallenge } from '../../payments/settlement/safe-to-rechallenge.ts';
import { recordRejection } from '../../payments/settlement/settlement-writes.ts';
import { whatIsBought } from '../../payments/settlement/terms.ts';
import { type ChallengeTemplate, needsMandate } from '../../payments/x402/wire/challenge.ts';
import type { Offer, Offers } from '../../payments/x402/wire/offers.ts';
import { refusedResponse } from '../../payments/x402/wire/payment-response.ts';
import { VALID_BEFORE_EXCESS_SECONDS, VALID_BEFORE_MARGIN_SECONDS } from '../../payments/x402/wire/proof.ts';
import { pathOf } from '../../resources/backend-request.ts';
import { advanceCall, callAt, type PreparedCall, type ProvenCall, type ResolvedCall } from '../call.ts';
import { paidPurchase } from './authorize.ts';
import type { QuoteAsked } from './quotes.ts';

/**
 * A paid call without a proof gets the challenge, whatever mandate it brought; a call without an
 * input gets it before it is prepared.
 */
export function challenge(selling: Selling, mandates?: MandateService): RequestHandler {
  return function challengeMiddleware(req, res, next) {
    const call = callAt(res, 'resolved', 'prepared');
    const { id } = call.resource;
    if (call.stage === 'resolved') {
      requirePayment(call, selling.offerTo(req, id), undefined);
      return undefined;
    }
    if (call.resource.pricing.type === 'free') {
      call.journal.flush();
      advanceCall(res, { ...call, stage: 'funded', funding: { kind: 'free' } });
      next();
      return undefined;
    }
    if (call.proof.kind === 'none') {
      const ask = (offer: Offer): void => requirePayment(call, selling.offerTo(req, id, offer), undefined, mandates);
      const offer = selling.offerFor(call, req);
      return offer instanceof Promise ? offer.then(ask) : ask(offer);
    }
    if (call.proof.kind === 'conflicting')
      throw new GatewayError('INPUT_INVALID', {
        message: 'Two different payment proofs came with this call. Send one.',
        details: { reason: 'payment_proofs_differ' },
      });
    next();
    return undefined;
  };
}

/** The right form, by the reason of contract 1.3. Other reasons come from facilitators. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ['invalid_payload', 'it must be the JSON of one x402 v2 PaymentPayload, as base64 where text is carried'],
  ['invalid_x402_version', 'x402Version must be 2, over HTTP in the header PAYMENT-SIGNATURE'],
  ['invalid_scheme', 'scheme must be exact'],
  ['invalid_network', 'it is for another network than the one in accepts'],
  [
    'invalid_payment_requirements',
    'accepted must be the entry of accepts that is offered now, unchanged; where that pays before the call, too many calls ended unpaid of late',
  ],
  ['invalid_exact_evm_payload_recipient_mismatch', 'authorization.to must be the payTo of the offer'],
  ['invalid_exact_evm_payload_authorization_value_mismatch', 'authorization.value must be the amount of the offer'],
  [
    'test_payer_not_allowed',
    'the key of this payer is public, for development on eip155:31337; pay from an account of your own',
  ],
  ['invalid_exact_evm_payload_authorization_valid_after', 'validAfter is still to come'],
  [
    'invalid_exact_evm_payload_authorization_valid_before',
    `validBefore has passed, or is too far away: it must be at least ${VALID_BEFORE_MARGIN_SECONDS} s from now, more where the backend answers first, and at most ${VALID_BEFORE_EXCESS_SECONDS} s beyond maxTimeoutSeconds`,
  ],
  ['invalid_exact_evm_payload_signature', 'the signature is not that of the payer for this authorization'],
  [
    'contract_signature_not_supported',
    'signatures of contract wallets cannot be verified here; pay from an account that signs with a key of its own',
  ],
  [
    'eip6492_factory_not_allowed',
    'its wallet is not deployed, and is not deployed for it here; deploy it first, or pay from another account',
  ],
  ['invalid_exact_evm_nonce_already_used', 'its nonce is used already; sign with a new one'],
  ['insufficient_funds', 'the payer does not hold the amount'],
]);

/**
 * Largest input that a buyer's token is bound to, bytes. The canonical form of a larger one costs
 * more than the challenge itself.
 */
const MAX_BOUND_BYTES = 16_384;

/** One sentence for the buyer: the reason, and the right form. */
export function refusalSentence(reason: string, fault?: string): string {
  const words = fault ?? WORDS.get(reason);
  return `The payment proof was refused: ${reason}${words === undefined ? '' : ` (${words})`}.`;
}

/**
 * Answers 402. Only this function does, so the 402 promise (contract 4.3) is kept here: a call that
 * brought a proof gets no challenge without the witness `owed`, which is undefined for a call
 * without a proof. Where a mandate is needed too, the challenge asks for it (contract 5), except
 * for a call without an input: the checkout for a mandate names the input.
 * @throws Error when the witness is missing or forged: a bug, which must not become a second
 * payment
 */
export function requirePayment(
  call: ResolvedCall | PreparedCall | ProvenCall,
  offer: Offer,
  owed: SafeToRechallenge | undefined,
  mandates?: MandateService,
): void {
  const { journal, requestId, responseWriter } = call;
  if (owed === undefined ? call.proof.kind !== 'none' : !SafeToRechallenge.is(owed))
    throw new Error('a challenge for a proof that may still move money');
  if (owed !== undefined && !owed.recorded) recordRejection(journal, owed.reason, owed.transaction);
  journal.record('payment.required', { paymentProvider: 'x402' });
  journal.flush();
  const template = offer.challenge;
  const expiresAt = new Date(Date.now() + template.lastsSeconds * 1_000).toISOString();
  const authorization =
    mandates !== undefined && call.stage !== 'resolved' && needsMandate(call.resource)
      ? checkouts(mandates, call, template.shown)
      : undefined;
  const facts = {
    requestId,
    expiresAt,
    token: offer.issueToken(boundTo(call, offer), owed?.answerOf),
    authorization,
    url: call.inPlace?.url,
  };
  if (owed === undefined) {
    responseWriter.paymentRequired(template.fresh(facts));
    return;
  }
  const { phase, reason, fault, transaction } = owed;
  const code = phase === 'settle' ? 'PAYMENT_SETTLEMENT_FAILED' : 'PAYMENT_INVALID';
  const message = refusalSentence(reason, fault);
  const refusal = { code, reason, message, retryable: false } as const;
  const challenge = template.refused(facts, refusal);
  responseWriter.paymentRequired(
    challenge,
    phase === 'settle'
      ? refusedResponse(call.stage === 'proven' ? call.agreed : offer, requestId, reason, transaction)
      : undefined,
  );
}

function checkouts(
  mandates: MandateService,
  call: PreparedCall | ProvenCall,
  [first, ...others]: ChallengeTemplate['shown'],
): string {
  return mandates.challenge(
    paidPurchase(call, first),
    others.map((other) => paidPurchase(call, other)),
  );
}

/** Equal to no purchase: the lowest of several prices buys no input. */
const NO_INPUT = 'f'.repeat(64);

/** The purchase that a token is bound to; undefined leaves it unbound. */
function boundTo(call: ResolvedCall | PreparedCall | ProvenCall, { byInput, isLowest }: Offer): string | undefined {
  if (isLowest) return NO_INPUT;
  if (call.stage === 'resolved') return undefined;
  const { resource, request, input, rawInput } = call;
  if (byInput !== undefined) return whatIsBought(resource.id, request, input);
  const bytes = rawInput?.byteLength ?? JSON.stringify(input).length;
  return bytes > MAX_BOUND_BYTES ? undefined : whatIsBought(resource.id, request, input);
}

/** The offers of one configuration, as a caller gets them now. */
export interface Selling {
  /**
   * The offer that a proof for a call may accept, at the price of its input. `shown`: the price
   * that the proof itself shows, given the lowest offer; then the backend is not asked for a quote.
   * @throws GatewayError INPUT_INVALID: the input has no price; GATEWAY_BUSY: no quote came
   */
  offerFor(
    call: PreparedCall | ProvenCall,
    req: Request,
    shown?: (lowest: Offer) => bigint | undefined,
  ): Offer | Promise<Offer>;
  /** The lowest offer, or the one offer where no price follows the input. */
  offer(resourceId: string): Offer;
  /** The present offer for a refused proof; the lowest one where no price can be told now. */
  offerAnew(call: PreparedCall | ProvenCall, req: Request): Promise<Offer>;
  /**
   * The offer of a 402 to the sender of a request. `offer`: that for its input; absent: the lowest.
   * `owed`: the witness after a proof; an answer that waits needs no more work, so `worksUnpaid` is
   * not asked about it.
   */
  offerTo(req: Request, resourceId: string, offer?: Offer, owed?: Pick<SafeToRechallenge, 'answerOf'>): Offer;
}

interface SellingParts {
  /** Whether a resource is still sold to the sender with its payment after the call. */
  readonly worksUnpaid?: (req: Request, resourceId: string) => boolean;
  /** Asks the backend for a price; absent: nothing is sold. */
  readonly askQuote?: (asked: Omit<QuoteAsked, 'network'>, req: Request) => Promise<bigint>;
}

/** Every resource with a price has an offer: the gateway does not start without. */
export function createSelling(offers: Offers, { worksUnpaid = () => true, askQuote }: SellingParts = {}): Selling {
  const offer = (resourceId: string): Offer => {
    const found = offers.get(resourceId);
    if (found === undefined) throw new Error(`no offer for ${resourceId}`);
    return found;
  };
  const offerFor: Selling['offerFor'] = (call, req, shown) => {
    const lowest = offer(call.resource.id);
    const { byInput, decimals } = lowest;
    if (byInput === undefined) return lowest;
    const { rule } = byInput;
    if (rule.kind !== 'quote') {
      const priced = priceOfInput(rule, call.input, decimals);
      // The rule of before may have had a price for it.
      const units = priced.kind === 'price' ? priced.units : shown?.(lowest);
      return byInput.at(units ?? unpriced(priced, call.input));
    }
    const units = shown?.(lowest);
    if (units !== undefined) return byInput.at(units);
    if (askQuote === undefined) throw new Error('nothing asks for quotes');
    return askQuote({ call, rule, decimals }, req).then(byInput.at);
  };
  return {
    offer,
    offerFor,
    async offerAnew(call, req) {
      try {
        return await offerFor(call, req);
      } catch (error) {
        if (error instanceof GatewayError) return offer(call.resource.id);
        throw error;
      }
    },
    offerTo(req, resourceId, found = offer(resourceId), owed) {
      const { upfront } = found;
      return upfront === undefined || owed?.answerOf !== undefined || worksUnpaid(req, resourceId) ? found : upfront;
    },
  };
}

/** @throws GatewayError INPUT_INVALID */
function unpriced(priced: InputPrice, input: JsonObject): never {
  if (priced.kind === 'price') throw new Error('it has a price');
  const { pointer, message } = priced;
  const errors = [{ path: pathOf(pointer, input), keyword: 'price', message }];
  throw new GatewayError('INPUT_INVALID', { message: 'This input has no price.', details: { errors } });
}
