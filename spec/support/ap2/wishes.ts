/** What a test mandate is to be like, for `mint.ts`. */

import type { Json, JsonObject } from '../../../src/json/json.ts';
import type { Ap2Profile, Purchase } from '../../../src/mandates/ap2/purchase.ts';
import { type Constraint, reference } from '../../../tools/mandate/maker/constraints.ts';
import type { Signer } from '../../../tools/mandate/maker/tokens.ts';
import type { Hand } from './hands.ts';
import type { TestKey } from './keys.ts';

/** What a presentation is to be like. Left out: right in every way. */
export interface Wishes {
  readonly now?: number;
  readonly purchase?: Purchase;
  readonly profile?: Ap2Profile;
  /** The checkout that a gateway handed out; else one is made for the purchase. */
  readonly checkoutJwt?: string;
  readonly checkout?: {
    readonly jti?: string;
    readonly change?: (token: CheckoutToken) => CheckoutToken;
    readonly signer?: Pick<Signer, 'sign'>;
  };
  /** The signer of the roots and its `iss`; `iss: undefined` leaves the claim out. */
  readonly issuer?: { readonly key: TestKey; readonly iss: string | undefined };
  /** With a payment mandate; for paid purchases whose payer is known. */
  readonly payment?: boolean;
  /** An agent between the first one and the one that closes. */
  readonly delegated?: boolean;
  /** Seconds that open mandates live. */
  readonly life?: number;
  readonly constraints?: readonly Constraint[];
  readonly paymentConstraints?: (openCheckoutHash: string) => readonly Constraint[];
  readonly hands?: {
    readonly open?: Hand;
    readonly subAgent?: Hand;
    readonly closed?: Hand;
    readonly openPayment?: Hand;
    readonly paymentSubAgent?: Hand;
    readonly closedPayment?: Hand;
  };
  readonly envelope?: (envelope: JsonObject) => Json;
}

/** Open mandates, root first; each segment ends in `~`. */
export interface OpenMandates {
  readonly checkout: readonly string[];
  readonly payment: readonly string[];
}

export interface Presentation {
  /** The value of `Agent-Authorization`. */
  readonly header: string;
  readonly payload: string;
  readonly paymentMandate: string | undefined;
  readonly checkoutJwt: string;
  readonly jti: string;
  readonly open: OpenMandates;
  /** Of the checkout mandate; each ends in `~`. */
  readonly segments: readonly string[];
  readonly paymentSegments: readonly string[];
}

/** A checkout before it is signed. */
export interface CheckoutToken {
  readonly header: JsonObject;
  readonly claims: JsonObject;
}

/** Constraints of open payment mandates beside the reference that each of them needs. */
export function withReference(...constraints: readonly Constraint[]): NonNullable<Wishes['paymentConstraints']> {
  return (openCheckoutHash) => [reference(openCheckoutHash), ...constraints];
}
