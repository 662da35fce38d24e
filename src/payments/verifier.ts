import type { PaymentLedger } from './ledger/ledger.ts';
import type { Offer } from './offers.ts';
import { decodeProof } from './x402/proof-codec.ts';
import type { Proof } from './x402/rail.ts';
import type { Candidate, Examination } from './x402/verify.ts';

/** How the caller's protocol carried a payment proof: not at all, once, or in a form that no proof can have. */
export type CarriedProof =
  | { readonly kind: 'none' }
  | { readonly kind: 'header'; readonly value: string }
  | { readonly kind: 'illegible' };

/** What the local checks say. `unavailable`: a question to the chain stayed open, which is not the buyer's fault. */
export type ProofVerdict =
  /** `refusal`: what else is wrong with it, when it belongs to a record that has to be answered all the same. */
  | { readonly kind: 'genuine'; readonly proof: Proof; readonly refusal?: string }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/** Believes a proof or not, before anything is written or paid (CONTRACT 4.2, steps 1 to 4). */
export interface ProofVerifier {
  /** @throws StoreError when a record had to be looked up and the store did not answer. */
  verify(carried: CarriedProof, offer: Offer): Promise<ProofVerdict>;
}

export function createProofVerifier(
  examine: (candidate: Candidate) => Examination,
  ledger: Pick<PaymentLedger, 'read'>,
  now: () => number = Date.now,
): ProofVerifier {
  return {
    async verify(carried, offer) {
      const decoded = carried.kind === 'header' ? decodeProof(carried.value) : ILLEGIBLE;
      if (decoded.kind === 'unreadable') return { kind: 'refused', reason: decoded.reason };
      const { requirements, resourceUrl } = offer;
      const examination = examine({ decoded, offer: requirements, resourceUrl, nowMs: now() });
      const { refusal } = examination;
      if (refusal !== undefined && !(await isKnown(ledger, examination.payId)))
        return { kind: 'refused', reason: refusal.reason };
      const signature = await examination.checkSignature();
      return signature.kind === 'genuine' && refusal !== undefined
        ? { ...signature, refusal: refusal.reason }
        : signature;
    },
  };
}

const ILLEGIBLE = { kind: 'unreadable', reason: 'invalid_payload' } as const;

/**
 * An authorization that somebody works on, or that entered a settlement, is answered by its record, whatever became of the offer or
 * of its window since: a 402 for it would ask for a second payment while the first may still move.
 */
async function isKnown(ledger: Pick<PaymentLedger, 'read'>, payId: string): Promise<boolean> {
  return (await ledger.read(payId)) !== undefined;
}
