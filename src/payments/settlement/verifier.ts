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
import type { BuyerTokens, ReadToken } from '../pricing/buyer-token.ts';
import {
  type Candidate,
  type Examination,
  isProofOf,
  type ProvenVerdict,
  type Unproven,
} from '../x402/verify/verify.ts';
import { type Agreed, type Offered, offeredTerms } from '../x402/wire/offers.ts';
import { type DecodedProof, decodeProof, VALID_BEFORE_MARGIN_SECONDS } from '../x402/wire/proof.ts';
import type { Proof } from '../x402/wire/types.ts';
import { createAcceptedOffers, type ReplacedOffers } from './accepted-offer.ts';
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
   * count against its budget. `bind`: SHA-256 hex of what is bought; a token shows a
   * price that follows the input for this alone.
   */
  verify(carried: CarriedProof, offer: Offered, network: string, bind: () => string): Promise<ProofVerdict>;
  /**
   * The price that the token of a proof shows for this input, while its 402 lasts, in base units of
   * the first asset; undefined: it shows none. Nothing else of the proof is checked.
   */
  priceShown(carried: CarriedProof, lowest: Offered, bind: () => string): bigint | undefined;
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
  const offers = createAcceptedOffers(tokens, replaced);
  const signatureOf = async (examination: Examination, network: string) => {
    const checked = await examination.checkSignature();
    return checked.kind === 'unproven' ? unproven.verdictOn(network, checked) : checked;
  };
  return {
    async verify(carried, offer, network, bind) {
      const decoded = 'value' in carried ? decodeProof(carried.value) : ILLEGIBLE;
      const { buyerToken } = decoded;
      // The accepted terms may be the fault of a refused proof, so its token is also read with the
      // present offer.
      const refused = (reason: string, fault?: string, token?: ReadToken): RefusedProof => ({
        ...{ kind: 'refused', reason, fault },
        answerOf: token?.answerOf ?? (buyerToken && tokens.read(buyerToken, offeredTerms(offer))?.answerOf),
      });
      if (carried.kind === 'version_1')
        return decoded.kind === 'decoded' ? refused('invalid_payload', IN_OLD_HEADER) : refused('invalid_x402_version');
      if (decoded.kind === 'unreadable') return refused(decoded.reason, decoded.fault);
      const { accepted, payload } = decoded.payload;
      if (blockedPayers.has(payload.authorization.from)) return { kind: 'blocked' };
      const nowMs = now();
      const { paymentIdentifier: key } = decoded;
      const { agreed, over, elsewhere, token } = offers.of(offer, { accepted, buyerToken, bind, nowMs });
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
      if (decoded.kind !== 'decoded') return undefined;
      const { buyerToken, payload } = decoded;
      return offers.priceShown(lowest, { accepted: payload.accepted, buyerToken, bind, nowMs: now() });
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
