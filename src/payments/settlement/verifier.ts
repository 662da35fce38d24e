import { createHash } from 'node:crypto';
import { RecentMap } from '../../time/recent-map.ts';
import type { Time } from '../../time/time.ts';
import type { PaymentLedger } from '../ledger/ledger.ts';
import { RETRY_WINDOW_MS } from '../ledger/transitions.ts';
import type { BuyerTokens, ShownToken } from '../pricing/buyer-token.ts';
import type { Candidate, Examination, ProvenVerdict, Unproven } from '../x402/verify/verify.ts';
import { decodeProof } from '../x402/wire/header-codec.ts';
import type { Agreed } from '../x402/wire/offers.ts';
import type { Proof } from '../x402/wire/types.ts';
import { createSlots } from './slots.ts';

/**
 * Questions about signatures that are under way. Few, because a stranger causes them for nothing; a
 * wallet that is deployed answers in the time of one call to a node. Whoever signs with a key of
 * his own is never asked about, so none of this can keep him waiting.
 */
const BOUNDS = { each: 2, eachWaiting: 32, all: 6, waitMs: 3_000 } as const;
/**
 * Signatures that were found good and need no second question, each under 150 bytes. Only good
 * ones: others are free to make.
 */
const REMEMBERED = 10_000;

/** What came of the signatures that only a chain or a facilitator can verify; for the metrics. */
type UnprovenCount = Record<'proven' | 'refused' | 'unavailable' | 'crowded', number>;

/**
 * Has signatures verified that this process cannot verify by itself, within a budget for each
 * network of clients and for all.
 */
export interface UnprovenSignatures {
  readonly count: Readonly<UnprovenCount>;
  /** `network`: whose budget it comes out of. `crowded`: the budget is used up at the moment. */
  verdictOn(network: string, unproven: Unproven): Promise<ProvenVerdict | { readonly kind: 'crowded' }>;
}

export function createUnprovenSignatures(time?: Time): UnprovenSignatures {
  const places = createSlots(BOUNDS, time);
  const proven = new RecentMap<Extract<ProvenVerdict, { readonly kind: 'genuine' }>>(REMEMBERED);
  const asking = new Map<string, Promise<ProvenVerdict | { readonly kind: 'crowded' }>>();
  const count: UnprovenCount = { proven: 0, refused: 0, unavailable: 0, crowded: 0 };

  const ask = async (network: string, name: string, { prove }: Unproven) => {
    const verdict = await places.within<ProvenVerdict | { readonly kind: 'crowded' }>(
      network,
      prove,
      async () => CROWDED,
    );
    count[verdict.kind === 'genuine' ? 'proven' : verdict.kind] += 1;
    if (verdict.kind === 'genuine' && proven.use(name) === undefined) proven.add(name, verdict);
    return verdict;
  };
  return {
    count,
    async verdictOn(network, unproven) {
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

const CROWDED = { kind: 'crowded' } as const;

/** What was signed, by whom, and how: two texts with one name have one answer. */
function nameOf({ proof }: Unproven): string {
  const { authorization, signature } = proof.payload.payload;
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return createHash('sha256')
    .update([from, to, value, validAfter, validBefore, nonce, signature].join('|'))
    .digest('base64url');
}

/**
 * How the caller's protocol carried a payment proof: not at all, once, or in a form that no proof
 * can have.
 */
export type CarriedProof =
  | { readonly kind: 'none' }
  | { readonly kind: 'header'; readonly value: string }
  | { readonly kind: 'illegible' }
  /**
   * In several places, and they differ: whichever were taken, the buyer may have meant the other.
   */
  | { readonly kind: 'conflicting' };

/**
 * What the local checks say. `unavailable`: a question to the chain stayed open, which is not the
 * buyer's fault.
 */
type ProofVerdict =
  /**
   * `refusal`: what is wrong with it all the same, when it may belong to a record that has to be
   * answered. `key`: the caller's own name for this payment, of the payment-identifier extension.
   * `token`: that of the 402 it was made for, when it came back.
   */
  | {
      readonly kind: 'genuine';
      readonly proof: Proof;
      readonly refusal: string | undefined;
      readonly key: string | undefined;
      readonly token: ShownToken | undefined;
    }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly cause: unknown }
  /** Too many signatures of contracts are being verified, of this network of clients or of all. */
  | { readonly kind: 'crowded' };

/** Believes a proof or not, before anything is written or paid (contract 4.2, steps 1 to 4). */
export interface ProofVerifier {
  /**
   * `network`: where the call came from; what costs a question to others comes out of its budget.
   * @throws StoreError when a record had to be looked up and the store did not answer.
   */
  verify(
    carried: CarriedProof,
    offer: Pick<Agreed, 'requirements' | 'resourceUrl'>,
    network: string,
  ): Promise<ProofVerdict>;
}

/** What a verifier works with beside the local checks and the ledger. */
interface VerifierParts {
  readonly unproven: Pick<UnprovenSignatures, 'verdictOn'>;
  readonly tokens: Pick<BuyerTokens, 'read'>;
}

export function createProofVerifier(
  examine: (candidate: Candidate) => Examination,
  ledger: Pick<PaymentLedger, 'read'>,
  { unproven, tokens }: VerifierParts,
  now: () => number = Date.now,
): ProofVerifier {
  return {
    async verify(carried, offer, network) {
      const decoded = carried.kind === 'header' ? decodeProof(carried.value) : ILLEGIBLE;
      if (decoded.kind === 'unreadable') return { kind: 'refused', reason: decoded.reason };
      const { requirements, resourceUrl } = offer;
      const nowMs = now();
      const examination = examine({ decoded, offer: requirements, resourceUrl, nowMs });
      const { refusal } = examination;
      const age = nowMs - Number(decoded.payload.payload.authorization.validBefore) * 1_000;
      // Old enough to be no new proof, young enough to have paid us before the store lost its
      // memory: the settlement asks the chain.
      const late = refusal?.reason === TOO_OLD && age >= -CLOCK_MARGIN_MS && age <= RETRY_WINDOW_MS;
      if (refusal !== undefined && !late && !(await isKnown(ledger, examination.payId)))
        return { kind: 'refused', reason: refusal.reason };
      const checked = await examination.checkSignature();
      const signature = checked.kind === 'unproven' ? await unproven.verdictOn(network, checked) : checked;
      const { kind } = signature;
      if (kind === 'crowded' || kind === 'unavailable') return signature;
      const { paymentIdentifier: key, buyerToken } = decoded;
      const token = buyerToken === undefined ? undefined : tokens.read(buyerToken);
      if (kind === 'genuine') return { kind, proof: signature.proof, refusal: refusal?.reason, key, token };
      // A facilitator that refused for another reason has nothing against the signature: what is
      // known here is answered by its record.
      if (checked.kind === 'unproven' && 'ofSignature' in signature && !signature.ofSignature) {
        if (await isKnown(ledger, examination.payId))
          return { kind: 'genuine', proof: checked.proof, refusal: refusal?.reason ?? signature.reason, key, token };
      }
      // The first check that failed is the one to name.
      return { kind, reason: refusal?.reason ?? signature.reason };
    },
  };
}

const TOO_OLD = 'invalid_exact_evm_payload_authorization_valid_before';
/**
 * More than what must be left of a new proof: the same reason is given to one that lives too long.
 */
const CLOCK_MARGIN_MS = 10_000;
const ILLEGIBLE = { kind: 'unreadable', reason: 'invalid_payload' } as const;

/**
 * An authorization that somebody works on, or that entered a settlement, is answered by its record,
 * whatever became of the offer or of its window since: a 402 for it would ask for a second payment
 * while the first may still move.
 */
async function isKnown(ledger: Pick<PaymentLedger, 'read'>, payId: string): Promise<boolean> {
  return (await ledger.read(payId)) !== undefined;
}
