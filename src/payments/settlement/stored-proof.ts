import { isSealed } from '../../crypto/sealed-text.ts';
import type { PaymentRecord } from '../ledger/ledger.ts';
import type { Proof } from '../x402/wire/rail.ts';
import type { PaymentPayload, PaymentRequirements } from '../x402/wire/types.ts';
import { UnreadableRecord } from './unreadable-record.ts';

/** What a record says was bought and with which authorization. */
interface StoredPurchase {
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

/** The same words for the log wherever it is met. */
export const UNREADABLE = 'the stored proof cannot be opened';

/**
 * Why a record cannot be gone on with: what was signed is sealed with a key that is not here. Undefined: it can be read. A record under
 * which nothing was sent may go then: the same proof makes one of its own.
 */
export function unreadable({ proof }: Pick<PaymentRecord, 'proof'>): string | undefined {
  return isSealed(proof) ? UNREADABLE : undefined;
}

/**
 * The purchase as it was fixed at the first reservation. Whatever is brought later under the same replay key (another price since,
 * or a second authorization that the payer signed for the same nonce) does not change what the chain is asked about; and a resource
 * that is no longer sold can still be brought to its end.
 * @throws UnreadableRecord
 */
export function readStoredProof(record: PaymentRecord): StoredPurchase {
  if (unreadable(record) !== undefined) throw new UnreadableRecord('proof');
  // Written by this gateway from a proof that had passed every check.
  const { payload, signedBy, requirements } = JSON.parse(record.proof) as StoredProof;
  const { network, asset, payee, units } = record;
  return {
    proof: { payId: record.payId, payload, signedBy },
    requirements: { ...requirements, network, asset, payTo: payee, amount: units },
  };
}

/** Longest that an offer may be paid, seconds: how far back the chain is searched where the offer itself cannot be read. */
const LONGEST_OFFER_SECONDS = 3_600;

/**
 * The same for a question to the chain alone, which asks only for what a record has in clear. Where the proof cannot be read there is no
 * signature in it, so nothing can be sent with it.
 */
export function recallForChain(record: PaymentRecord): StoredPurchase {
  if (unreadable(record) === undefined) return readStoredProof(record);
  const { payId, payer, payee, units, nonce, validBefore } = record;
  const authorization = {
    from: payer,
    to: payee,
    value: units,
    validAfter: '0',
    validBefore: String(validBefore),
    nonce,
  };
  const requirements = clearRequirements(record);
  const payload: PaymentPayload = {
    x402Version: 2,
    accepted: requirements,
    payload: { signature: '0x', authorization },
  };
  return { proof: { payId, payload, signedBy: 'contract' }, requirements };
}

/** The offer as far as a record has it in clear: what was signed is forgotten when a record is final. */
export function clearRequirements({ network, asset, payee, units }: PaymentRecord): PaymentRequirements {
  return {
    scheme: 'exact',
    network,
    asset,
    payTo: payee,
    amount: units,
    maxTimeoutSeconds: LONGEST_OFFER_SECONDS,
    extra: {},
  };
}
