import { type PublicJwk, readSigningKey, type SigningKey } from '../../../crypto/signing-key.ts';
import type { CheckoutKeySettings } from './settings.ts';

/** The keys of checkouts and receipts. */
export interface CheckoutKeys {
  readonly own: SigningKey;
  /** Own key first; their ids differ. */
  readonly trusted: readonly PublicJwk[];
}

/** @throws Error for a key that the configuration must have refused */
export function checkoutKeysOf({ signingKey, kid, alsoTrust }: CheckoutKeySettings): CheckoutKeys {
  const reading = readSigningKey(signingKey);
  if (!reading.ok) throw new Error('the configuration let a checkout key pass that is none');
  const own = kid === undefined ? reading.key : { ...reading.key, publicJwk: { ...reading.key.publicJwk, kid } };
  return { own, trusted: [own.publicJwk, ...alsoTrust] };
}
