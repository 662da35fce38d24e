import { isDeepStrictEqual } from 'node:util';
import { authorizationDigest } from './digest.ts';
import { replayKey } from './payid.ts';
import type { DecodedProof } from './payload-schema.ts';
import type { Proof } from './rail.ts';
import type { Recover } from './recover.ts';
import type { X402Config } from './settings.ts';
import { ACCOUNT_SIGNATURE_BYTES, readAccountSignature } from './signature.ts';
import { invalidWindow, type WindowReason } from './window.ts';
import type { EchoedRequirements, Eip3009Authorization, PaymentPayload, PaymentRequirements } from './wire.ts';

/** The first cheap check that failed, in the order of CONTRACT 4.2: step 1 `offer`, step 2 `terms`, step 3 `window`. */
export type ProofRefusal =
  | {
      readonly step: 'offer';
      readonly reason: 'invalid_network' | 'invalid_payment_requirements';
    }
  | {
      readonly step: 'terms';
      readonly reason:
        | 'invalid_exact_evm_payload_recipient_mismatch'
        | 'invalid_exact_evm_payload_authorization_value_mismatch';
    }
  | { readonly step: 'window'; readonly reason: WindowReason };

/**
 * Step 4. `unavailable`: the signature is no account's and the chain did not say whether the payer is a contract, which is our
 * failure and not the buyer's.
 */
export type SignatureVerdict =
  | { readonly kind: 'genuine'; readonly proof: Proof }
  | { readonly kind: 'refused'; readonly reason: 'invalid_exact_evm_payload_signature' }
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/**
 * What the cheap checks found. A refusal is not yet an answer: an authorization that already has a record under `payId` is
 * answered from that record, whatever became of the offer or the window since (CONTRACT 4.2 step 3), and never 402 for it.
 */
export interface Examination {
  readonly payId: string;
  readonly refusal: ProofRefusal | undefined;
  /** The costly check, run only when somebody asks. Needed before a record is shown, because `payId` alone proves nothing. */
  checkSignature(): Promise<SignatureVerdict>;
}

/** A decoded proof against an offer at a time. `resourceUrl` is the one we put in the challenge. */
export interface Candidate {
  readonly decoded: Extract<DecodedProof, { readonly kind: 'decoded' }>;
  readonly offer: PaymentRequirements;
  readonly resourceUrl: string;
  readonly nowMs: number;
}

export interface ExaminerDeps {
  readonly terms: Pick<X402Config, 'chainId' | 'asset' | 'domainSeparator' | 'localSignatureCheck'>;
  readonly recover: Recover;
  /** Whether an account is a contract; rejects when the chain does not answer. Undefined without an RPC URL. */
  readonly hasCode: ((address: string) => Promise<boolean>) | undefined;
}

/** Addresses up to here belong to precompiled contracts, which answer anything (ethereum/ERCs 877). */
const LAST_RESERVED_ADDRESS = 0xffffn;
const BAD_SIGNATURE = { kind: 'refused', reason: 'invalid_exact_evm_payload_signature' } as const;

/** The local verification of proofs: pure but for the one look whether a payer is a contract. */
export function createExaminer({ terms, recover, hasCode }: ExaminerDeps): (candidate: Candidate) => Examination {
  const digest = authorizationDigest(terms.domainSeparator);
  const checkSignature = async (payId: string, payload: PaymentPayload): Promise<SignatureVerdict> => {
    const { signature, authorization } = payload.payload;
    const account = readAccountSignature(signature);
    if (!terms.localSignatureCheck) return genuine(payId, payload, account?.canonical ?? signature, 'contract');
    if (account !== undefined && (await recover(digest(authorization), account)) === authorization.from)
      return genuine(payId, payload, account.canonical, 'account');
    if (BigInt(authorization.from) <= LAST_RESERVED_ADDRESS) return BAD_SIGNATURE;
    if (hasCode === undefined)
      return isLong(signature) ? genuine(payId, payload, signature, 'contract') : BAD_SIGNATURE;
    try {
      return (await hasCode(authorization.from)) ? genuine(payId, payload, signature, 'contract') : BAD_SIGNATURE;
    } catch (cause) {
      return { kind: 'unavailable', cause };
    }
  };
  return function examine(candidate) {
    const { payload } = candidate.decoded;
    const { from, nonce } = payload.payload.authorization;
    const payId = replayKey({ chainId: terms.chainId, asset: terms.asset, from, nonce });
    return { payId, refusal: firstRefusal(candidate), checkSignature: () => checkSignature(payId, payload) };
  };
}

function firstRefusal({ decoded, offer, resourceUrl, nowMs }: Candidate): ProofRefusal | undefined {
  const { accepted, resource, payload } = decoded.payload;
  if (accepted.network !== offer.network) return { step: 'offer', reason: 'invalid_network' };
  const echoed = resource === undefined || resource.url === resourceUrl;
  if (!echoed || !equalsOffer(accepted, offer)) return { step: 'offer', reason: 'invalid_payment_requirements' };
  const { authorization } = payload;
  const terms = offTerms(authorization, offer);
  if (terms !== undefined) return { step: 'terms', reason: terms };
  const window = invalidWindow(authorization, offer.maxTimeoutSeconds, nowMs);
  return window === undefined ? undefined : { step: 'window', reason: window };
}

/**
 * Addresses in any case, amounts as integers, and at least our own `extra`: a client may add to it, never change it. One that leaves it
 * out contradicts nothing: what of it touches money (name and version of the asset) is in what the payer signed.
 */
function equalsOffer(accepted: EchoedRequirements, offer: PaymentRequirements): boolean {
  const { extra } = accepted;
  return (
    accepted.scheme === offer.scheme &&
    accepted.network === offer.network &&
    BigInt(accepted.amount) === BigInt(offer.amount) &&
    sameAddress(accepted.asset, offer.asset) &&
    sameAddress(accepted.payTo, offer.payTo) &&
    accepted.maxTimeoutSeconds === offer.maxTimeoutSeconds &&
    (extra === undefined || Object.entries(offer.extra).every(([name, value]) => isDeepStrictEqual(extra[name], value)))
  );
}

function offTerms(
  authorization: Eip3009Authorization,
  offer: PaymentRequirements,
): Extract<ProofRefusal, { readonly step: 'terms' }>['reason'] | undefined {
  if (!sameAddress(authorization.to, offer.payTo)) return 'invalid_exact_evm_payload_recipient_mismatch';
  if (BigInt(authorization.value) !== BigInt(offer.amount))
    return 'invalid_exact_evm_payload_authorization_value_mismatch';
  return undefined;
}

function sameAddress(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** The proof in the spelling that the chain accepts, whichever the buyer used. */
function genuine(
  payId: string,
  payload: PaymentPayload,
  signature: string,
  signedBy: Proof['signedBy'],
): SignatureVerdict {
  const canonical = { ...payload, payload: { ...payload.payload, signature } };
  return { kind: 'genuine', proof: { payId, payload: canonical, signedBy } };
}

/** Longer than any account's signature: a contract's, or one for a wallet that is not deployed yet. */
function isLong(signature: string): boolean {
  return signature.length > 2 + 2 * ACCOUNT_SIGNATURE_BYTES;
}
