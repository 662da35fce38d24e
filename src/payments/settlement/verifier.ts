/**
 * Verifies a payment proof before anything is written or paid: the offer that it accepts, present
 * or replaced, the local checks, and the signatures that only the chain or a facilitator can
 * check.
 */

import { createHash } from 'node:crypto';
import { Limiter } from '../../limiter.ts';
import { RecentMap } from '../../time/recent-map.ts';
import type { Time } from '../../time/time.ts';
import { RETRY_WINDOW_MS } from '../ledger/table.ts';
import { formatAmount } from '../pricing/amount.ts';
import type { BuyerTokens, OfferedTerms, ReadToken } from '../pricing/buyer-token.ts';
import {
  type Candidate,
  type Examination,
  isProofOf,
  type ProvenVerdict,
  type Unproven,
} from '../x402/verify/verify.ts';
import { UPFRONT } from '../x402/wire/challenge.ts';
import {
  type Agreed,
  isPaidIn,
  type Offer,
  type Offered,
  type Offers,
  offeredIn,
  offeredTerms,
  tokenTerms,
} from '../x402/wire/offers.ts';
import { type DecodedProof, decodeProof, VALID_BEFORE_MARGIN_SECONDS } from '../x402/wire/proof.ts';
import type { EchoedRequirements, Proof } from '../x402/wire/types.ts';
import type { KnownPayment } from './known-payment.ts';

/**
 * Questions about signatures that are under way. Few, because a stranger causes them at no cost; a
 * deployed wallet answers in the time of one call to a node. Signatures of plain keys need no
 * question, so these bounds never delay them.
 */
const BOUNDS = { most: 6, each: 2, eachWaiting: 32, waitMs: 3_000 } as const;

/** Good signatures that need no second question, each under 150 bytes. Bad ones cost nothing. */
const REMEMBERED = 10_000;

const CROWDED = { kind: 'crowded' } as const;

/** The reason for a proof that accepts another offer than the present one. */
const NOT_OFFERED = 'invalid_payment_requirements';
const TOO_OLD = 'invalid_exact_evm_payload_authorization_valid_before';
/** Tolerance for clocks that differ, seconds. */
const CLOCK_MARGIN_SECONDS = 4;
const ILLEGIBLE: DecodedProof = {
  kind: 'unreadable',
  reason: 'invalid_payload',
  fault: 'it must come once, as text or, in a JSON message, as an object',
};
const IN_OLD_HEADER = 'it came in X-PAYMENT, the header of version 1; send it in PAYMENT-SIGNATURE';

/**
 * How the caller's protocol carried a payment proof: not at all, once, or in a form that no proof
 * can have. `conflicting`: several that differ, so that the buyer may mean either. `version_1`: in
 * the header of version 1 of x402, which is not read for a payment.
 */
export type CarriedProof =
  | { readonly kind: 'none' }
  | { readonly kind: 'header'; readonly value: string }
  | { readonly kind: 'illegible' }
  | { readonly kind: 'conflicting' }
  | { readonly kind: 'version_1'; readonly value: string };

/**
 * The verdict on a proof.
 *
 * - `genuine`: `agreed` is the offer that it accepts. `refusal` is its fault, despite which the
 *   chain may show that it paid. `key` is the caller's own name for the payment
 *   (payment-identifier), `token` the token of its 402.
 * - `refused`: only a record may still answer it.
 * - `blocked`: only a record may still answer it; nothing else of it was checked.
 */
type ProofVerdict =
  | {
      readonly kind: 'genuine';
      readonly proof: Proof;
      readonly agreed: Agreed;
      readonly refusal: string | undefined;
      readonly key: string | undefined;
      readonly token: ReadToken | undefined;
    }
  | RefusedProof
  | { readonly kind: 'blocked' }
  | OpenQuestion;

/**
 * A question that is open by no fault of the buyer. `unavailable`: no answer came about a
 * signature. `crowded`: too many signatures of contracts are being verified, of this network or of
 * all.
 */
export type OpenQuestion = { readonly kind: 'unavailable'; readonly cause: unknown } | { readonly kind: 'crowded' };

interface RefusedProof {
  readonly kind: 'refused';
  readonly reason: string;
  /** The fault and its remedy for the buyer, where they are known. */
  readonly fault?: string | undefined;
  /** The payment whose answer its buyer may still buy, where a token of this offer names one. */
  readonly answerOf: string | undefined;
}

/** Contract 4.2, steps 1 to 4. */
export interface ProofVerifier {
  /**
   * `offer`: the present one. `network`: where the call came from; questions about the signature
   * count against its budget. `bind`: SHA-256 hex of what is bought; a token that is bound to
   * something else shows no offer.
   */
  verify(carried: CarriedProof, offer: Offered, network: string, bind: () => string): Promise<ProofVerdict>;
  /**
   * The price that the token of a proof shows for this input, while its 402 lasts, in base units of
   * the first asset; undefined: it shows none. Nothing else of the proof is checked.
   */
  priceShown(carried: CarriedProof, lowest: Offered, bind: string): bigint | undefined;
  /**
   * Checks that the payer of a known payment signed the proof, whatever offer it accepts: the proof
   * that paid was verified then, another one of the same authorization is verified now.
   */
  verifyKnown(
    payment: Pick<KnownPayment, 'record' | 'proof' | 'agreed'>,
    network: string,
  ): Promise<{ readonly kind: 'genuine'; readonly proof: Proof } | { readonly kind: 'refused' } | OpenQuestion>;
}

/** What a verifier works with beside the local checks. */
interface VerifierParts {
  readonly unproven: Pick<UnprovenSignatures, 'verdictOn'>;
  readonly tokens: Pick<BuyerTokens, 'read'>;
  readonly replaced: Pick<ReplacedOffers, 'find' | 'of'>;
  /** Addresses in lower case, as a decoded proof has them: their proofs buy nothing new. */
  readonly blockedPayers: ReadonlySet<string>;
}

export function createProofVerifier(
  examine: (candidate: Candidate) => Examination,
  parts: VerifierParts,
  now: () => number = Date.now,
): ProofVerifier {
  const { unproven, tokens, replaced, blockedPayers } = parts;
  const signatureOf = async (examination: Examination, network: string) => {
    const checked = await examination.checkSignature();
    return checked.kind === 'unproven' ? unproven.verdictOn(network, checked) : checked;
  };
  return {
    async verify(carried, offer, network, bind) {
      const decoded = 'value' in carried ? decodeProof(carried.value) : ILLEGIBLE;
      const { buyerToken } = decoded;
      const readWith = (terms: OfferedTerms): ReadToken | undefined =>
        buyerToken === undefined ? undefined : tokens.read(buyerToken, terms);
      // The accepted terms may be the fault of a refused proof, so its token is also read with the
      // present offer.
      const refused = (reason: string, fault?: string, token?: ReadToken): RefusedProof => ({
        ...{ kind: 'refused', reason, fault },
        answerOf: token?.answerOf ?? readWith(offeredTerms(offer))?.answerOf,
      });
      if (carried.kind === 'version_1')
        return decoded.kind === 'decoded' ? refused('invalid_payload', IN_OLD_HEADER) : refused('invalid_x402_version');
      if (decoded.kind === 'unreadable') return refused(decoded.reason, decoded.fault);
      const { accepted, payload } = decoded.payload;
      if (blockedPayers.has(payload.authorization.from)) return { kind: 'blocked' };
      const nowMs = now();
      const { paymentIdentifier: key } = decoded;
      // In a further asset a token shows the offers of before only where these are known.
      const [token] = [offer, ...replaced.of(offer.resourceUrl)]
        .flatMap((one) => readWith(tokenTerms(one, accepted)) ?? [])
        .toSorted((one, other) => (other.offeredUntilMs ?? 0) - (one.offeredUntilMs ?? 0));
      const { agreed, over, elsewhere } = acceptedOffer(offer, accepted, token, { replaced, bind, nowMs });
      const { requirements, resourceUrl, inPlace, leastSeconds } = agreed;
      const examination = examine({ decoded, offer: requirements, resourceUrl, inPlace, leastSeconds, nowMs });
      const refusal = examination.refusal?.reason ?? (over ? NOT_OFFERED : undefined);
      const fault = elsewhere ?? examination.refusal?.fault;
      const age = nowMs - Number(payload.authorization.validBefore) * 1_000;
      // Too old to be new, young enough to have paid us before the store lost its data: the
      // settlement asks the chain.
      const late =
        (refusal === TOO_OLD && age >= -leftToBegin(leastSeconds) && age <= RETRY_WINDOW_MS) ||
        (over && examination.refusal === undefined);
      if (refusal !== undefined && !late) return refused(refusal, fault, token);
      const signature = await signatureOf(examination, network);
      const { kind } = signature;
      if (kind === 'crowded' || kind === 'unavailable') return signature;
      if (kind === 'genuine') return { kind, proof: signature.proof, agreed, refusal, key, token };
      // The first check that failed gives the reason.
      return refused(refusal ?? signature.reason, fault, token);
    },
    priceShown(carried, lowest, bind) {
      const decoded = 'value' in carried ? decodeProof(carried.value) : ILLEGIBLE;
      if (decoded.kind !== 'decoded' || decoded.buyerToken === undefined) return undefined;
      const terms = tokenTerms(lowest, decoded.payload.accepted);
      const token = tokens.read(decoded.buyerToken, terms);
      const isShown = token !== undefined && isFor(token, bind) && (token.offeredUntilMs ?? 0) > now();
      return isShown ? BigInt(terms.units) : undefined;
    },
    async verifyKnown({ record, proof: decoded, agreed }, network) {
      const { payId, proofDigest } = record;
      const proof = { payId, payload: decoded.payload, signedBy: 'contract' } as const;
      if (isProofOf(proofDigest, proof)) return { kind: 'genuine', proof };
      const { requirements, resourceUrl } = agreed;
      const examination = examine({ decoded, offer: requirements, resourceUrl, nowMs: now() });
      if (examination.payId !== payId)
        return { kind: 'unavailable', cause: 'a payment of another network or asset, with another signature' };
      const signature = await signatureOf(examination, network);
      // A facilitator that refused for another reason has nothing against the signature.
      return 'ofSignature' in signature && !signature.ofSignature
        ? { kind: 'unavailable', cause: signature.reason }
        : signature;
    },
  };
}

/**
 * Longest rest of a window that is too short for a new proof, milliseconds. A window that is too
 * long has the same reason, and more than this left.
 */
function leftToBegin(leastSeconds: number = VALID_BEFORE_MARGIN_SECONDS): number {
  return (leastSeconds + CLOCK_MARGIN_SECONDS) * 1_000;
}

/** Counts the answers about unproven signatures; for the metrics. */
type UnprovenCount = Record<'proven' | 'refused' | 'unavailable' | 'crowded', number>;

export type UnprovenSignatures = ReturnType<typeof createUnprovenSignatures>;

/**
 * Verifies signatures that only the chain or a facilitator can check, within a budget for each
 * network of clients and for all.
 */
export function createUnprovenSignatures(time?: Time) {
  const limiter = new Limiter({ ...BOUNDS, time });
  const proven = new RecentMap<Extract<ProvenVerdict, { readonly kind: 'genuine' }>>(REMEMBERED);
  const asking = new Map<string, Promise<ProvenVerdict | typeof CROWDED>>();
  const count: UnprovenCount = { proven: 0, refused: 0, unavailable: 0, crowded: 0 };

  const ask = async (network: string, name: string, { prove }: Unproven) => {
    const verdict = (await limiter.within(network, prove)) ?? CROWDED;
    count[verdict.kind === 'genuine' ? 'proven' : verdict.kind] += 1;
    if (verdict.kind === 'genuine' && proven.use(name) === undefined) proven.add(name, verdict);
    return verdict;
  };
  return {
    count,
    /** `network`: the one that the question counts against. `crowded`: its budget is used up. */
    async verdictOn(network: string, unproven: Unproven): Promise<ProvenVerdict | typeof CROWDED> {
      const name = nameOf(unproven);
      const known = proven.use(name) ?? asking.get(name);
      if (known !== undefined) return known;
      // Copies of one proof are one question.
      const question = ask(network, name, unproven).finally(() => asking.delete(name));
      asking.set(name, question);
      return question;
    },
  };
}

/** The digest of all that was signed and of the signature: one name has one answer. */
function nameOf({ proof }: Unproven): string {
  const { authorization, signature } = proof.payload.payload;
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return createHash('sha256')
    .update([from, to, value, validAfter, validBefore, nonce, signature].join('|'))
    .digest('base64url');
}

/**
 * The members of an offer that can change while the process runs: amount, time, and in `extra`
 * whether the money moves first. Network and asset tell the offers of one resource apart.
 */
type Terms = Pick<EchoedRequirements, 'network' | 'asset' | 'amount' | 'maxTimeoutSeconds' | 'extra'>;

type ReplacedOffers = ReturnType<typeof createReplacedOffers>;

interface ReplacedOffer {
  readonly offer: Offered;
  readonly untilMs: number;
}

/**
 * Remembers replaced offers for the buyers whose clients do not echo the token of their 402. An
 * offer is remembered as long as such a 402 lasts, so the number of resources and of changes bounds
 * the memory.
 */
export function createReplacedOffers(now: () => number = Date.now) {
  let replaced: readonly ReplacedOffer[] = [];
  /** The replaced offers of a resource whose 402s may still be accepted, the oldest first. */
  const of = (resourceUrl: string): readonly Offered[] => {
    const nowMs = now();
    const own = replaced.filter(({ offer, untilMs }) => untilMs >= nowMs && offer.resourceUrl === resourceUrl);
    return own.map(({ offer }) => offer);
  };
  return {
    /** Remembers the offers of `before` that `after` does not have. */
    replace(before: Offers, after: Offers): void {
      const nowMs = now();
      // A price that follows the input was offered for that input alone, which the token shows.
      const fixed = (offers: Offers): Offer[] => [...offers.values()].filter(({ byInput }) => byInput === undefined);
      const present = new Map(fixed(after).map((offer) => [offer.resourceUrl, termsOf(offer)]));
      const isGone = ({ resourceUrl, requirements }: Offered): boolean =>
        !present.get(resourceUrl)?.some((one) => sameTerms(one.requirements, requirements));
      const ended = fixed(before).filter((offer) => termsOf(offer).some(isGone));
      const longest = (offer: Offered): number =>
        Math.max(...termsOf(offer).map(({ requirements }) => requirements.maxTimeoutSeconds));
      replaced = [
        ...replaced.filter(({ untilMs }) => untilMs >= nowMs),
        ...ended.map((offer) => ({ offer, untilMs: nowMs + longest(offer) * 1_000 })),
      ];
    },
    of,
    /** The replaced terms of a proof, while a 402 with them may still be accepted. */
    find: (resourceUrl: string, terms: Terms): Agreed | undefined =>
      of(resourceUrl)
        .flatMap(termsOf)
        .findLast(({ requirements }) => sameTerms(requirements, terms)),
  };
}

/** All terms that a proof for this offer may accept. */
function termsOf(offer: Offered): readonly Offered[] {
  return [offer, ...offer.others].flatMap((one) => [one, one.upfront ?? []].flat());
}

/**
 * The present offer in the asset that the proof accepts, unless it accepts other terms that are
 * shown to have been offered for this input. A token shows that on every process that has its key,
 * also on one that never made the offer: prices do not change on all replicas at once. No token
 * shows whether the money was to move first, or an asset that is offered no more: only the process
 * that made the offer knows. For the others the time of an offer in such an asset has passed, so
 * that the chain is asked whether it paid before. `token`: of the proof, read with its terms.
 * `over`: the offer was or may have been made, and its time has passed. `elsewhere`: the fault of a
 * proof in an asset that is not offered.
 */
function acceptedOffer(
  present: Offered,
  accepted: Terms,
  token: ReadToken | undefined,
  { replaced, bind, nowMs }: Pick<VerifierParts, 'replaced'> & { readonly bind: () => string; readonly nowMs: number },
): { readonly agreed: Agreed; readonly over: boolean; readonly elsewhere?: string } {
  const own = replaced.find(present.resourceUrl, accepted);
  const inAsset = offeredIn(present, accepted);
  if (inAsset === undefined) {
    const ended = present.ended?.flatMap(termsOf).find(({ requirements }) => sameTerms(requirements, accepted));
    const known = own ?? ended;
    return known === undefined ? notOffered(present, accepted) : { agreed: known, over: own === undefined };
  }
  const { upfront } = inAsset;
  const offer = upfront !== undefined && accepted.extra?.['paymentFlow'] === UPFRONT ? upfront : inAsset;
  const { requirements } = offer;
  if (sameTerms(requirements, accepted)) return { agreed: offer, over: false };
  const { amount, maxTimeoutSeconds } = accepted;
  const isShown =
    sameFlow(requirements, accepted) &&
    (token?.boundTo === undefined ? present.byInput === undefined : isFor(token, bind()));
  const until = isShown ? token?.offeredUntilMs : undefined;
  if (until === undefined && own === undefined) return { agreed: offer, over: false };
  const { leastSeconds } = own ?? offer;
  const agreed = {
    ...offer,
    requirements: { ...requirements, amount, maxTimeoutSeconds, extra: (own ?? offer).requirements.extra },
    amount: formatAmount(BigInt(amount), offer.decimals),
    ...(leastSeconds === undefined ? {} : { leastSeconds }),
  };
  return { agreed, over: own === undefined && until !== undefined && nowMs >= until };
}

/** Compares a proof in an asset that is not offered with one on its network, else the first. */
function notOffered(present: Offered, { network }: Terms) {
  const all = [present, ...present.others];
  const agreed = all.find(({ requirements }) => requirements.network === network) ?? present;
  if (all.length === 1) return { agreed, over: false };
  const names = all.map(({ requirements }) => `${requirements.asset} on ${requirements.network}`);
  return { agreed, over: false, elsewhere: `accepted must be in an asset that is offered now: ${names.join(', ')}` };
}

/** Whether the 402 of a token was made for what is bought. */
function isFor({ boundTo }: ReadToken, bind: string): boolean {
  return boundTo !== undefined && bind.startsWith(boundTo);
}

function sameTerms(one: Terms, other: Terms): boolean {
  return (
    one.amount === other.amount &&
    one.maxTimeoutSeconds === other.maxTimeoutSeconds &&
    sameFlow(one, other) &&
    isPaidIn(one, other)
  );
}

/** Whether two flows agree; `other` may leave its flow out, as clients do. */
function sameFlow(one: Pick<Terms, 'extra'>, other: Pick<Terms, 'extra'>): boolean {
  const [flow = '', otherFlow = flow] = [one, other].map(({ extra }) => extra?.['paymentFlow']);
  return flow === otherFlow;
}
