import type * as rails from '../../rail.ts';
import type { PaymentPayload, PaymentRequirements } from './types.ts';

/** A proof of x402 that passed the local checks. */
export type Proof = rails.Proof<PaymentPayload>;

/** A way money moves for what x402 signs. */
export type PaymentRail = rails.PaymentRail<PaymentPayload, PaymentRequirements>;
