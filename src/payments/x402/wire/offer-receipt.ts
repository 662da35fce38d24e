/** The extension `offer-receipt` of x402: signed offers and signed receipts. */

import type { HostKey } from '../../../crypto/host-key.ts';
import type { PaymentRecord } from '../../ledger/ledger.ts';
import type { Extension, PaymentRequirements } from './types.ts';

export const OFFER_RECEIPT = 'offer-receipt';

/** Of all forms of `info` alike: clients echo it, and no verifier reads it. */
const SCHEMA = { type: 'object' } as const;

/** Both payloads have this version. */
const VERSION = 1;

/** The one offer of a 402 signed. `validUntil`: Unix seconds. */
export function signedOffer(
  key: HostKey,
  { scheme, network, asset, payTo, amount }: PaymentRequirements,
  resourceUrl: string,
  validUntil: number,
): Extension {
  const signature = key.sign({ version: VERSION, resourceUrl, scheme, network, asset, payTo, amount, validUntil });
  return { info: { offers: [{ format: 'jws', acceptIndex: 0, signature }] }, schema: SCHEMA };
}

/**
 * That a payment was accepted and its answer is on the way: headers leave before a body, so it
 * claims no more. `issuedAt`: Unix seconds.
 */
export function signedReceipt(
  key: HostKey,
  { network, payer, transaction }: Pick<PaymentRecord, 'network' | 'payer' | 'transaction'>,
  resourceUrl: string,
  issuedAt: number,
): Extension {
  const paidBy = transaction === undefined ? {} : { transaction };
  const signature = key.sign({ version: VERSION, network, resourceUrl, payer, issuedAt, ...paidBy });
  return { info: { receipt: { format: 'jws', signature } }, schema: SCHEMA };
}
