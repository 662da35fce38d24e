import type { PaymentRecord } from './ledger/ledger.ts';
import type { Proof } from './x402/rail.ts';
import type { PaymentPayload, PaymentRequirements } from './x402/wire.ts';

/** What a record says was bought and with which authorization. */
export interface Purchase {
  readonly proof: Proof;
  readonly requirements: PaymentRequirements;
}

/** What a record keeps of a proof. */
interface StoredProof {
  readonly payload: PaymentPayload;
  readonly signedBy: Proof['signedBy'];
}

/** The proof as a record keeps it. */
export function storedProof({ payload, signedBy }: Proof): string {
  return JSON.stringify({ payload, signedBy } satisfies StoredProof);
}

/**
 * The purchase as it was fixed at the first reservation. Whatever is brought later under the same replay key (another price since,
 * or a second authorization that the payer signed for the same nonce) does not change what the chain is asked about.
 */
export function recall(record: PaymentRecord, offer: PaymentRequirements): Purchase {
  // Written by this gateway from a proof that had passed every check.
  const { payload, signedBy } = JSON.parse(record.proof) as StoredProof;
  const { network, asset, payee, units } = record;
  return {
    proof: { payId: record.payId, payload, signedBy },
    requirements: { ...offer, network, asset, payTo: payee, amount: units },
  };
}
