import { type PublicJwk, readSigningKey, type SigningKey } from '../../../crypto/signing-key.ts';
import type { Ap2Profile } from '../model/profile.ts';
import type { IssuerSettings } from './issuer.ts';

/** `authorization.ap2` after every check. */
export interface Ap2Config {
  readonly profile: Ap2Profile;
  readonly issuers: readonly IssuerSettings[];
  readonly checkout: CheckoutKeySettings;
}

/** Whose checkouts are good. Being here gives a key no right to root mandates. */
export interface CheckoutKeySettings {
  /** PKCS#8 PEM of a P-256 key: it signs the checkouts and the receipts, and nothing else. */
  readonly signingKey: string;
  /** Undefined: the thumbprint of the key. */
  readonly kid: string | undefined;
  /** Whose checkouts are accepted besides, for a change of keys. */
  readonly alsoTrust: readonly PublicJwk[];
}

/** The keys of checkouts and receipts. */
interface CheckoutKeys {
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
