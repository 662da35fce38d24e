/** What this merchant demands of mandates (ap2 7.3, ap2 14), derived from the configuration. */

export interface Ap2Profile {
  /** `aud` of hops and checkouts, exact text. */
  readonly audience: string;
  /** `iss` of checkouts and receipts. */
  readonly issuer: string;
  readonly merchant: { readonly id: string; readonly name: string; readonly website?: string };
  /** Seconds; applied once a comparison. */
  readonly clockSkewSeconds: number;
  readonly maxPresentationAgeSeconds: number;
  readonly maxEnvelopeBytes: number;
  /** Algorithms of mandates: ES256, and what the operator added. */
  readonly algorithms: ReadonlySet<string>;
  /** How long a checkout that is handed out can be used, seconds. */
  readonly checkoutTtlSeconds: number;
  /** Digits behind the point of each currency that a purchase can have. */
  readonly exponents: ReadonlyMap<string, number>;
  readonly policy: {
    readonly paymentMandate: 'optional' | 'required';
    readonly bindPaymentNonce: boolean;
  };
}
