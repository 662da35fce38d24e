/**
 * The verifier of mandates: the steps of ap2 7.6 in their order, except for the last one, which the
 * register takes. The pipeline reaches it through `MandateService`.
 */

import type { PublicJwk } from '../../crypto/signing-key.ts';
import type { MandateClaim, MandateRegister, OpenMandateUse } from '../register.ts';
import { type ChainCache, createChainVerifier, type Segment, type VerifiedChain } from './chain.ts';
import {
  type CheckedCheckout,
  checkPurchase,
  createCheckoutCheck,
  createCheckoutKeys,
  type IssuedCheckouts,
} from './checkout.ts';
import { checkCheckoutConstraints } from './checkout-constraints.ts';
import { type CarriedMandate, readEnvelope } from './envelope.ts';
import type { TrustedIssuers } from './issuers.ts';
import { type Allowance, checkPayment, type PaymentSubject } from './payment-mandate.ts';
import type { Ap2Profile, Purchase } from './purchase.ts';
import { object } from './readers.ts';
import {
  type AcceptedMandate,
  type MandateFamily,
  type MandateReference,
  type MandateVerdict,
  type Reason,
  Refused,
  type RefusedMandate,
} from './reasons.ts';
import { referenceOf } from './sd-jwt.ts';

/** Each answer reads the clock once. */
export interface MandateService {
  /** The currency in which a free resource costs nothing. */
  readonly freeCurrency: string;
  /**
   * `authorization` as JSON text (ap2 7.4): the mandate that is needed, and a fresh checkout.
   * `others`: the same purchase in further assets.
   */
  challenge(purchase: Purchase, others?: readonly Purchase[]): string;
  /** Checks that a call carried a mandate for this purchase. Writes nothing, never rejects. */
  verify(carried: CarriedMandate, purchase: Purchase): Promise<MandateVerdict>;
  /**
   * The receipt of an accepted mandate, a signed JWT (ap2 13). `transaction`: of the settled
   * payment.
   */
  accepted(reference: MandateReference, order: { readonly id: string; readonly transaction?: string }): string;
  /** The receipt of a refused mandate. */
  rejected(reference: MandateReference, reason: Reason): string;
  /** For calls that pay nothing. */
  readonly register: MandateRegister;
}

/**
 * How long uses are remembered after the last moment that a mandate can be accepted, seconds:
 * clocks of replicas differ, and a call that was checked in time may wait before it reserves.
 */
const REMEMBERED_SECONDS = 600;

interface MandateVerifierParts {
  readonly profile: Ap2Profile;
  readonly trust: TrustedIssuers;
  /** Belongs to the trusted issuers; left out, the verifier has its own. */
  readonly cache?: ChainCache;
  /** The gateway's own checkout key and those that the operator added. */
  readonly checkoutKeys: readonly PublicJwk[];
  /** The checkouts that this process handed out. */
  readonly minted: IssuedCheckouts;
}

/**
 * Whether a mandate is right for a purchase. It is not reserved: two calls with one mandate are
 * both accepted here, and the register tells them apart. `now`: unix seconds, read once a call.
 * Rejects for a bug only, and then nothing is accepted.
 */
export type VerifyMandate = (carried: CarriedMandate, purchase: Purchase, now: number) => Promise<MandateVerdict>;

/** The progress of a check: the facts that a refusal may state of the presentation. */
interface Progress {
  family: MandateFamily | undefined;
  reference: MandateReference | undefined;
  issuer: string | undefined;
}

/** A right payment mandate, with what its open mandates allow, root first. */
interface PaidUnder {
  readonly chain: VerifiedChain;
  readonly allowances: readonly Allowance[];
}

export function createMandateVerifier(parts: MandateVerifierParts): VerifyMandate {
  const { profile, minted } = parts;
  const verifyChain = createChainVerifier(parts);
  const checkCheckout = createCheckoutCheck({ profile, signed: createCheckoutKeys(parts.checkoutKeys), minted });

  async function accepted(
    carried: CarriedMandate,
    purchase: Purchase,
    at: number,
    progress: Progress,
  ): Promise<AcceptedMandate> {
    const now = Math.floor(at);
    const envelope = readEnvelope(carried, profile.maxEnvelopeBytes);
    progress.family = 'checkout';
    progress.reference = referenceOf(envelope.checkout);
    const chain = await verifyChain(envelope.checkout, 'checkout', now, (issuer) => {
      progress.issuer = issuer;
    });
    const agreed = checkCheckout(object(chain.closed.mandate), now);
    const { hash, claims } = agreed;
    const units = checkPurchase(claims, purchase, profile);
    checkNonce(chain, claims.jti);
    for (const open of chain.open) checkCheckoutConstraints(object(open.mandate), claims);
    progress.family = 'payment';
    const subject = { purchase, units, checkout: chain, checkoutHash: hash, now };
    const paid = await paidUnder(envelope.payment, subject, claims.jti);
    return {
      kind: 'accepted',
      mode: chain.mode,
      issuer: chain.issuer,
      ...chain.reference,
      mandateId: chain.closed.id,
      checkoutIssuer: claims.iss,
      checkoutId: claims.jti,
      claim: claimOf(chain, agreed, paid, profile, at),
    };
  }

  /** Step 14. A call that pays nothing needs no payment mandate, and `checkPayment` refuses one. */
  async function paidUnder(
    presentation: string | undefined,
    subject: Omit<PaymentSubject, 'presentation'>,
    jti: string,
  ): Promise<PaidUnder | undefined> {
    const { payment } = subject.purchase;
    if (presentation === undefined) {
      if (profile.policy.paymentMandate === 'required' && payment !== undefined)
        throw new Refused('payment_mandate_required');
      return undefined;
    }
    const chain = await verifyChain(presentation, 'payment', subject.now);
    checkNonce(chain, jti);
    return { chain, allowances: checkPayment(chain, { ...subject, presentation }, profile) };
  }

  return async function verifyMandate(carried, purchase, at) {
    const progress: Progress = { family: undefined, reference: undefined, issuer: undefined };
    try {
      return await accepted(carried, purchase, at, progress);
    } catch (error) {
      if (error instanceof Refused) return refused(error, progress);
      throw error;
    }
  };
}

/** A closing hop signs the `jti` of the checkout. A root without hops signs the checkout's hash. */
function checkNonce({ nonce }: VerifiedChain, jti: string): void {
  if (nonce !== undefined && nonce !== jti) throw new Refused('nonce_mismatch');
}

/**
 * The claim of an accepted presentation (ap2 7.3, ap2 10): its closed mandates and its checkout
 * once, each of its open mandates once or as often as the payment mandate allows. `at`: unix
 * seconds with their fraction, so that no mandate seems younger than it is: a register refuses
 * mandates older than itself.
 */
function claimOf(
  checkout: VerifiedChain,
  { claims: { jti, exp, signedAt } }: CheckedCheckout,
  paid: PaidUnder | undefined,
  { clockSkewSeconds }: Ap2Profile,
  at: number,
): MandateClaim {
  const closed = paid === undefined ? [checkout.closed.id] : [checkout.closed.id, paid.chain.closed.id];
  // No token is in both chains: an open payment mandate holds the hash of a checkout segment, so
  // neither chain can be inside the other.
  const open = [
    ...checkout.open.map((open, index) => useOf(open, sharedAllowance(paid, index), clockSkewSeconds, at)),
    ...(paid?.chain.open ?? []).map((open, index) => useOf(open, paid?.allowances[index], clockSkewSeconds, at)),
  ];
  return {
    at: Math.floor(at),
    age: at - signedAt,
    // One token may close both chains, with two mandates of which each presentation shows one.
    once: [...new Set(closed.map((id) => `m:${id}`)), `j:${jti}`],
    // The end of the checkout, not the earliest end of all: with other disclosures
    // (issuer_jwt_hash) one closed mandate may stand under open mandates that end at other times,
    // but its checkout ends for all of them.
    onceUntil: exp + clockSkewSeconds + REMEMBERED_SECONDS,
    open,
  };
}

/**
 * An open checkout mandate shares the allowance of the open payment mandate at the same position:
 * root with root, sub-agent with sub-agent, the last one's where the payment chain is shorter.
 */
function sharedAllowance(paid: PaidUnder | undefined, index: number): Allowance {
  return paid?.allowances[Math.min(index, paid.allowances.length - 1)];
}

function useOf(open: Segment, recurrence: Allowance, skew: number, at: number): OpenMandateUse {
  const ends = [open.claims['exp'], open.mandate?.['exp']].filter((end) => typeof end === 'number');
  // Steps 8 and 10 demand an `exp`: without one a register could never forget this mandate.
  if (ends.length === 0) throw new Refused('claims_invalid');
  return { id: open.id, age: ageOf(open, at), until: Math.min(...ends) + skew + REMEMBERED_SECONDS, recurrence };
}

/** Seconds since the `iat` of its token, or else of its mandate; undefined without either. */
function ageOf({ claims, mandate }: Segment, at: number): number | undefined {
  const made = claims['iat'] ?? mandate?.['iat'];
  return typeof made === 'number' ? at - made : undefined;
}

function refused({ reason, facts, cause }: Refused, { family, reference, issuer }: Progress): RefusedMandate {
  return {
    kind: 'refused',
    reason,
    ...(family === undefined ? {} : { mandate: family }),
    ...facts,
    reference,
    issuer,
    ...(cause === undefined ? {} : { cause }),
  };
}
