/** The local checks of a proof (contract 4.2, steps 1 to 4): cheap ones first, signature last. */

import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { innerSignature } from '../chain/wallet-signature.ts';
import { ACCOUNT_SIGNATURE_BYTES, isPublishedAccount, type Recover, readAccountSignature } from '../evm/account.ts';
import { authorizationDigest, bytesHex, lowerHex } from '../evm/eip3009.ts';
import { type DecodedProof, invalidWindow, replayKey, type WindowFault } from '../wire/proof.ts';
import type { X402Config } from '../wire/settings.ts';
import type {
  EchoedRequirements,
  Eip3009Authorization,
  PaymentPayload,
  PaymentRail,
  PaymentRequirements,
  Proof,
  WalletSignatures,
} from '../wire/types.ts';

/** Bytes of a digest: no collisions, and small where thousands are kept. */
const DIGEST_BYTES = 18;
/** Addresses up to here are precompiled contracts, which answer anything (ethereum/ERCs 877). */
const LAST_RESERVED_ADDRESS = 0xffffn;
/** Without a node no contract can be asked, and an unverified proof must not be sent on. */
const NO_NODE = { kind: 'refused', reason: 'contract_signature_not_supported' } as const;
const BAD_SIGNATURE = { kind: 'refused', reason: 'invalid_exact_evm_payload_signature' } as const;

/** Translated reasons of a facilitator that concern the signature. */
const OF_SIGNATURE: ReadonlySet<string> = new Set([
  'invalid_exact_evm_payload_signature',
  'eip6492_factory_not_allowed',
]);

/**
 * The result of the cheap checks. A refusal is not yet an answer: an authorization that has a
 * record is answered from that record, whatever became of the offer or the window since (contract
 * 4.2 step 3), and never with 402.
 */
export interface Examination {
  /** In the present network and asset. */
  readonly payId: string;
  readonly refusal: ProofRefusal | undefined;
  /** The costly check. Needed before a record is shown, because `payId` alone proves nothing. */
  checkSignature(): Promise<SignatureVerdict>;
}

/**
 * A decoded proof and the terms that it is compared with. `resourceUrl` and `inPlace` are all URLs
 * that challenges of the resource have: a proof for another one is a mistake, or a theft.
 */
export interface Candidate {
  readonly decoded: Extract<DecodedProof, { readonly kind: 'decoded' }>;
  readonly offer: PaymentRequirements;
  readonly resourceUrl: string;
  readonly inPlace?: RegExp | undefined;
  /** Least time left of the window, seconds, where that is more than usual. */
  readonly leastSeconds?: number | undefined;
  readonly nowMs: number;
}

/**
 * The first failed cheap check (contract 4.2): step 1 `offer`, step 2 `terms`, step 3 `window`.
 * `fault`: for the buyer, where more can be said than by the reason alone.
 */
type ProofRefusal =
  | {
      readonly step: 'offer';
      readonly reason: 'invalid_network' | 'invalid_payment_requirements';
      readonly fault?: string;
    }
  | {
      readonly step: 'terms';
      readonly reason:
        | 'invalid_exact_evm_payload_recipient_mismatch'
        | 'invalid_exact_evm_payload_authorization_value_mismatch'
        | 'test_payer_not_allowed';
      readonly fault?: string;
    }
  | ({ readonly step: 'window' } & WindowFault);

/**
 * Step 4, as far as this process can decide it alone. A signature that no key made may be that of a
 * contract, which only its code can confirm. Until then it counts for nothing, because anyone can
 * write one in the name of any payer.
 */
type SignatureVerdict =
  | Genuine
  | {
      readonly kind: 'refused';
      readonly reason: 'invalid_exact_evm_payload_signature' | 'contract_signature_not_supported';
    }
  | Unproven;

interface Genuine {
  readonly kind: 'genuine';
  readonly proof: Proof;
}

/** A claimed signature of the payer. */
export interface Unproven {
  readonly kind: 'unproven';
  readonly proof: Proof;
  /** Asks the payer's code, or the facilitator. Moves nothing. Never rejects. */
  prove(): Promise<ProvenVerdict>;
}

/**
 * A refusal that is not `ofSignature` is a facilitator's for another reason and proves nothing
 * about the signer. `unavailable`: no answer came, which is no fault of the buyer.
 */
export type ProvenVerdict =
  | Genuine
  | { readonly kind: 'refused'; readonly reason: string; readonly ofSignature: boolean }
  | { readonly kind: 'unavailable'; readonly cause: unknown };

export interface ExaminerDeps {
  readonly terms: Pick<X402Config, 'chainId' | 'asset' | 'domainSeparator' | 'localSignatureCheck'>;
  readonly recover: Recover;
  /** Asks payers that are contracts; undefined without an RPC URL. */
  readonly wallets: WalletSignatures | undefined;
  /** The rail's verdict, for `localSignatureCheck: false`. Never rejects. */
  readonly verifyByRail: PaymentRail['verify'];
  /**
   * Whether our clock is known to be wrong. The window would then refuse every proof, or accept one
   * that has ended, so it refuses none: the proof reaches the rail, which gives no verdict in that
   * time. A 402 would have the buyer sign again and again.
   */
  readonly clockIsWrong?: () => boolean;
}

/** The local verification of proofs. Pure, except for `prove`, whose number the caller bounds. */
export function createExaminer(deps: ExaminerDeps): (candidate: Candidate) => Examination {
  const { terms, recover, wallets, verifyByRail, clockIsWrong = () => false } = deps;
  const digest = authorizationDigest(terms.domainSeparator);
  const checkSignature = async (payId: string, { decoded, offer }: Candidate): Promise<SignatureVerdict> => {
    const { payload } = decoded;
    const { signature, authorization } = payload.payload;
    const account = readAccountSignature(signature);
    const signed = digest(authorization);
    if (account !== undefined && recover(signed, account) === authorization.from)
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
    const { chainId, asset } = terms;
    const payId = replayKey({ ...candidate.decoded.payload.payload.authorization, chainId, asset });
    const refusal = firstRefusal(candidate, terms.chainId);
    return {
      payId,
      refusal: refusal?.step === 'window' && clockIsWrong() ? undefined : refusal,
      checkSignature: () => checkSignature(payId, candidate),
    };
  };
}

function firstRefusal(
  { decoded, offer, resourceUrl, inPlace, leastSeconds, nowMs }: Candidate,
  chainId: number,
): ProofRefusal | undefined {
  const { accepted, resource, payload } = decoded.payload;
  if (accepted.network !== offer.network)
    return { step: 'offer', reason: 'invalid_network', fault: `accepted.network must be ${offer.network}` };
  const echoed = resource === undefined || resource.url === resourceUrl || inPlace?.test(resource.url) === true;
  const other = echoed ? otherThanOffered(accepted, offer) : 'resource.url';
  if (other !== undefined)
    return {
      step: 'offer',
      reason: 'invalid_payment_requirements',
      fault: `${other} is not that of the challenge; send it unchanged, from a new one`,
    };
  const { authorization } = payload;
  const terms = termsMismatch(authorization, offer);
  if (terms !== undefined) return { step: 'terms', reason: terms };
  if (isPublishedAccount(authorization.from, chainId)) return { step: 'terms', reason: 'test_payer_not_allowed' };
  const window = invalidWindow(authorization, offer.maxTimeoutSeconds, nowMs, leastSeconds);
  return window === undefined ? undefined : { step: 'window', ...window };
}

/**
 * The first member of `accepted` that differs from the offer. Addresses count in any case, amounts
 * as integers. A client may add to `extra`, or leave it out, never change it: its part that
 * concerns money (name and version of the asset) is signed.
 */
function otherThanOffered(accepted: EchoedRequirements, offer: PaymentRequirements): string | undefined {
  const { extra } = accepted;
  if (BigInt(accepted.amount) !== BigInt(offer.amount)) return 'accepted.amount';
  if (!sameAddress(accepted.asset, offer.asset)) return 'accepted.asset';
  if (!sameAddress(accepted.payTo, offer.payTo)) return 'accepted.payTo';
  if (accepted.maxTimeoutSeconds !== offer.maxTimeoutSeconds) return 'accepted.maxTimeoutSeconds';
  if (extra === undefined) return undefined;
  const changed = Object.entries(offer.extra).find(([name, value]) => !isDeepStrictEqual(extra[name], value));
  return changed && `accepted.extra.${changed[0]}`;
}

function termsMismatch(
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

/** Lets a spent nonce pass: it may have paid us, and the settlement finds that out. */
async function provenByRail(
  verify: PaymentRail['verify'],
  proof: Proof,
  offer: PaymentRequirements,
): Promise<ProvenVerdict> {
  const verdict = await verify(proof, offer);
  if (verdict.kind === 'unavailable') return verdict;
  // `unfunded` means that the transfer itself would work.
  if (verdict.kind === 'valid' || verdict.kind === 'unfunded' || verdict.nonceSpent) return { kind: 'genuine', proof };
  return { kind: 'refused', reason: verdict.reason, ofSignature: OF_SIGNATURE.has(verdict.reason) };
}

/** The proof in the spelling that the chain accepts. */
function proofOf(payId: string, payload: PaymentPayload, signature: string, signedBy: Proof['signedBy']): Proof {
  const canonical = { ...payload, payload: { ...payload.payload, signature } };
  return { payId, payload: canonical, signedBy };
}

/** Longer than any account's signature: a contract's, deployed or not. */
function isLong(signature: string): boolean {
  return signature.length > 2 + 2 * ACCOUNT_SIGNATURE_BYTES;
}

/**
 * Tells signed authorizations with the same replay key apart: covers all that is signed, and the
 * signature in canonical spelling. A copy with another signature or window is another proof, so
 * what is known of one holds for no other.
 */
export function proofDigest({ payId, payload }: Pick<Proof, 'payId' | 'payload'>): string {
  const { signature, authorization } = payload.payload;
  const { to, value, validAfter, validBefore } = authorization;
  const spelled = readAccountSignature(signature)?.canonical ?? signature.toLowerCase();
  const signed = [payId, to.toLowerCase(), value, validAfter, validBefore, spelled].join('|');
  return hash('sha256', signed, 'buffer').toString('base64url', 0, DIGEST_BYTES);
}

/**
 * Whether a proof as it was sent has this digest, which covers the signature of a deployed wallet
 * without the wrapper that its client may send.
 */
export function isProofOf(digest: string, { payId, payload }: Pick<Proof, 'payId' | 'payload'>): boolean {
  const inner = innerSignature(lowerHex(payload.payload.signature));
  const unwrapped = { ...payload, payload: { ...payload.payload, signature: inner ?? payload.payload.signature } };
  return [payload, unwrapped].some((one) => proofDigest({ payId, payload: one }) === digest);
}
