/** The settings of AP2 that the configuration derives, and the keys of checkouts made from them. */

import { type PublicJwk, readSigningKey, type SigningKey } from '../../../crypto/signing-key.ts';
import type { Ap2Profile } from '../model/profile.ts';
import type { IssuerSettings } from './issuer.ts';

/** `authorization.ap2` after every check. */
export interface Ap2Config {
  readonly profile: Ap2Profile;
  readonly issuers: readonly IssuerSettings[];
  readonly checkout: CheckoutKeySettings;
}

/** The keys whose checkouts are accepted. None of them may root a mandate. */
export interface CheckoutKeySettings {
  /** PKCS#8 PEM of a P-256 key: it signs the checkouts and the receipts, and nothing else. */
  readonly signingKey: string;
  /** Undefined: the thumbprint of the key. */
  readonly kid: string | undefined;
  /** Further keys whose checkouts are accepted, for a change of keys. */
  readonly alsoTrust: readonly PublicJwk[];
}

/** The keys of checkouts and receipts. */
interface CheckoutKeys {
  readonly own: SigningKey;
  /** The own key first; all ids differ. */
  readonly trusted: readonly PublicJwk[];
}

/** @throws Error for a key that the configuration must have refused */
export function checkoutKeysOf({ signingKey, kid, alsoTrust }: CheckoutKeySettings): CheckoutKeys {
  const reading = readSigningKey(signingKey);
  if (!reading.ok) throw new Error('the configuration let a checkout key pass that is none');
  const own = kid === undefined ? reading.key : { ...reading.key, publicJwk: { ...reading.key.publicJwk, kid } };
  return { own, trusted: [own.publicJwk, ...alsoTrust] };
}
