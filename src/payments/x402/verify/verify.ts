import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { WalletSignatures } from '../chain/wallet-signature.ts';
import { bytesHex } from '../evm/abi-words.ts';
import { ACCOUNT_SIGNATURE_BYTES, type Recover, readAccountSignature } from '../evm/signature.ts';
import { authorizationDigest } from '../evm/typed-data.ts';
import { type DecodedProof, replayKey } from '../wire/payload-schema.ts';
import type { X402Config } from '../wire/settings.ts';
import type {
  EchoedRequirements,
  Eip3009Authorization,
  PaymentPayload,
  PaymentRail,
  PaymentRequirements,
  Proof,
} from '../wire/types.ts';
import { invalidWindow, type WindowReason } from '../wire/window.ts';

/**
 * 132 bits of a digest, base64url: enough that nobody finds a second proof for it, and short where
 * thousands are remembered.
 */
const DIGEST_CHARACTERS = 22;

/**
 * What tells one signed authorization from another with the same replay key: all that is signed,
 * and the signature in one spelling. A copy whose signature was replaced, or that says another
 * window, is another proof: what is known of the one says nothing of the other.
 */
export function proofDigest({ payId, payload }: Proof): string {
  const { signature, authorization } = payload.payload;
  const { to, value, validAfter, validBefore } = authorization;
  const spelled = readAccountSignature(signature)?.canonical ?? signature.toLowerCase();
  return createHash('sha256')
    .update([payId, to.toLowerCase(), value, validAfter, validBefore, spelled].join('|'))
    .digest('base64url')
    .slice(0, DIGEST_CHARACTERS);
}

/**
 * The first cheap check that failed, in the order of contract 4.2: step 1 `offer`, step 2 `terms`,
 * step 3 `window`.
 */
type ProofRefusal =
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

/** The payer signed it. */
interface Genuine {
  readonly kind: 'genuine';
  readonly proof: Proof;
}

/**
 * Step 4, as far as this process can decide it alone. A signature that no key made may be that of a
 * contract, which only its code can say: it counts for nothing until somebody was asked, because
 * anybody can write one in the name of anybody.
 */
type SignatureVerdict =
  | Genuine
  | {
      readonly kind: 'refused';
      readonly reason: 'invalid_exact_evm_payload_signature' | 'contract_signature_not_supported';
    }
  | Unproven;

/** Text that claims to be a signature of its payer. */
export interface Unproven {
  readonly kind: 'unproven';
  readonly proof: Proof;
  /**
   * Asks who can tell: the payer's code, or the facilitator where signatures are left to it. Moves
   * nothing. Never rejects.
   */
  prove(): Promise<ProvenVerdict>;
}

/**
 * What came of asking. A refusal that is not `ofSignature` is a facilitator's for another reason,
 * which says nothing about who signed. `unavailable`: no answer came, which is our failure and not
 * the buyer's.
 */
export type ProvenVerdict =
  | Genuine
  | { readonly kind: 'refused'; readonly reason: string; readonly ofSignature: boolean }
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/**
 * What the cheap checks found. A refusal is not yet an answer: an authorization that already has a
 * record under `payId` is answered from that record, whatever became of the offer or the window
 * since (contract 4.2 step 3), and never 402 for it.
 */
export interface Examination {
  readonly payId: string;
  readonly refusal: ProofRefusal | undefined;
  /** The costly check. Needed before a record is shown, because `payId` alone proves nothing. */
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
  /** Asks payers that are contracts; undefined without an RPC URL. */
  readonly wallets: WalletSignatures | undefined;
  /**
   * What the rail says of a proof, where signatures are left to it (`localSignatureCheck: false`).
   * Rejects never.
   */
  readonly verifyByRail: PaymentRail['verify'];
}

/**
 * Addresses up to here belong to precompiled contracts, which answer anything (ethereum/ERCs 877).
 */
const LAST_RESERVED_ADDRESS = 0xffffn;
/**
 * Without a node nobody here can ask a contract, and what nobody verified must not be sent on in
 * the name of its payer.
 */
const NO_NODE = { kind: 'refused', reason: 'contract_signature_not_supported' } as const;
const BAD_SIGNATURE = { kind: 'refused', reason: 'invalid_exact_evm_payload_signature' } as const;

/**
 * The local verification of proofs. Pure: who has to be asked is asked by `prove`, which the caller
 * may bound.
 */
export function createExaminer(deps: ExaminerDeps): (candidate: Candidate) => Examination {
  const { terms, recover, wallets, verifyByRail } = deps;
  const digest = authorizationDigest(terms.domainSeparator);
  const checkSignature = async (payId: string, { decoded, offer }: Candidate): Promise<SignatureVerdict> => {
    const { payload } = decoded;
    const { signature, authorization } = payload.payload;
    const account = readAccountSignature(signature);
    const signed = digest(authorization);
    if (account !== undefined && (await recover(signed, account)) === authorization.from)
      return { kind: 'genuine', proof: proofOf(payId, payload, account.canonical, 'account') };
    if (BigInt(authorization.from) <= LAST_RESERVED_ADDRESS) return BAD_SIGNATURE;
    const proof = proofOf(payId, payload, account?.canonical ?? signature, 'contract');
    if (!terms.localSignatureCheck)
      return { kind: 'unproven', proof, prove: () => provenByRail(verifyByRail, proof, offer) };
    if (wallets === undefined) return isLong(signature) ? NO_NODE : BAD_SIGNATURE;
    const hash = bytesHex(signed);
    return { kind: 'unproven', proof, prove: () => provenByWallet(wallets, proof, hash) };
  };
  return function examine(candidate) {
    const { payload } = candidate.decoded;
    const { from, nonce } = payload.payload.authorization;
    const payId = replayKey({ chainId: terms.chainId, asset: terms.asset, from, nonce });
    return { payId, refusal: firstRefusal(candidate), checkSignature: () => checkSignature(payId, candidate) };
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
 * Addresses in any case, amounts as integers, and at least our own `extra`: a client may add to it,
 * never change it. One that leaves it out contradicts nothing: what of it touches money (name and
 * version of the asset) is in what the payer signed.
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
function proofOf(payId: string, payload: PaymentPayload, signature: string, signedBy: Proof['signedBy']): Proof {
  const canonical = { ...payload, payload: { ...payload.payload, signature } };
  return { payId, payload: canonical, signedBy };
}

async function provenByWallet(wallets: WalletSignatures, proof: Proof, hash: string): Promise<ProvenVerdict> {
  const { authorization, signature } = proof.payload.payload;
  try {
    const verdict = await wallets.check(authorization.from, hash, signature);
    return verdict.kind === 'refused'
      ? { ...verdict, ofSignature: true }
      : { kind: 'genuine', proof: proofOf(proof.payId, proof.payload, verdict.signature, 'contract') };
  } catch (cause) {
    return { kind: 'unavailable', cause };
  }
}

/**
 * A spent nonce may have paid us: that is for the settlement to find out, and it is found behind
 * the signature.
 */
async function provenByRail(
  verify: PaymentRail['verify'],
  proof: Proof,
  offer: PaymentRequirements,
): Promise<ProvenVerdict> {
  const verdict = await verify(proof, offer);
  if (verdict.kind === 'unavailable') return verdict;
  // A relayer without gas says so of a transfer that works.
  if (verdict.kind === 'valid' || verdict.kind === 'unfunded' || verdict.nonceSpent) return { kind: 'genuine', proof };
  return { kind: 'refused', reason: verdict.reason, ofSignature: OF_SIGNATURE.has(verdict.reason) };
}

/** Reasons of a facilitator (already inward) that say who did not sign. */
const OF_SIGNATURE: ReadonlySet<string> = new Set([
  'invalid_exact_evm_payload_signature',
  'eip6492_factory_not_allowed',
]);

/**
 * Longer than any account's signature: a contract's, or one for a wallet that is not deployed yet.
 */
function isLong(signature: string): boolean {
  return signature.length > 2 + 2 * ACCOUNT_SIGNATURE_BYTES;
}
