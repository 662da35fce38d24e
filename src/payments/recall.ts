import type { PaymentRecord } from './ledger/ledger.ts';
import type { Proof } from './x402/rail.ts';
import type { PaymentPayload, PaymentRequirements } from './x402/wire.ts';

/** What a record says was bought and with which authorization. */
export interface Purchase {
  readonly proof: Proof;
  readonly requirements: PaymentRequirements;
}

/**
 * The purchase as it was fixed at the first reservation. Whatever is brought later under the same replay key (another price since,
 * or a second authorization that the payer signed for the same nonce) does not change what the chain is asked about.
 */
export function recall(record: PaymentRecord, brought: Proof, offer: PaymentRequirements): Purchase {
  // Written by this gateway from a proof that had passed every check.
  const payload = JSON.parse(record.proof) as PaymentPayload;
  const { network, asset, payee, units } = record;
  return {
    proof: { payId: record.payId, payload, signedBy: brought.signedBy },
    requirements: { ...offer, network, asset, payTo: payee, amount: units },
  };
}
