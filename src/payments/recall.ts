import type { PaymentRecord } from './ledger/ledger.ts';
import type { Proof } from './x402/rail.ts';
import type { PaymentPayload, PaymentRequirements } from './x402/wire.ts';

/** What a record says was bought and with which authorization. */
export interface Purchase {
  readonly proof: Proof;
  readonly requirements: PaymentRequirements;
}

/** What a record keeps of a proof and of the offer it was made for. */
interface StoredProof {
  readonly payload: PaymentPayload;
  readonly signedBy: Proof['signedBy'];
  readonly requirements: PaymentRequirements;
}

/** The proof as a record keeps it, with our own words of the offer: what the buyer echoed of it is not ours. */
export function storedProof({ payload, signedBy }: Proof, requirements: PaymentRequirements): string {
  return JSON.stringify({ payload, signedBy, requirements } satisfies StoredProof);
}

/**
 * The purchase as it was fixed at the first reservation. Whatever is brought later under the same replay key (another price since,
 * or a second authorization that the payer signed for the same nonce) does not change what the chain is asked about; and a resource
 * that is no longer sold can still be brought to its end.
 */
export function recall(record: PaymentRecord): Purchase {
  // Written by this gateway from a proof that had passed every check.
  const { payload, signedBy, requirements } = JSON.parse(record.proof) as StoredProof;
  const { network, asset, payee, units } = record;
  return {
    proof: { payId: record.payId, payload, signedBy },
    requirements: { ...requirements, network, asset, payTo: payee, amount: units },
  };
}
