import type { Purchase } from './ap2/model/purchase.ts';
import type { Reason } from './ap2/model/reasons.ts';
import type { MandateReference, MandateVerdict } from './ap2/model/verdict.ts';
import type { CarriedMandate } from './ap2/token/envelope.ts';
import type { MandateRegister } from './register/register.ts';

/** What the middleware of a call asks about mandates. Each answer reads the clock once. */
export interface MandateService {
  /** The currency in which a free resource costs nothing. */
  readonly freeCurrency: string;
  /**
   * Which mandate a purchase needs, with a fresh checkout to make it for: the member
   * `authorization` as JSON text (ap2 7.4).
   */
  challenge(purchase: Purchase): string;
  /** Whether what was carried is a mandate for this purchase. Writes nothing. Never rejects. */
  verify(carried: CarriedMandate, purchase: Purchase): Promise<MandateVerdict>;
  /**
   * The receipt of a mandate that was accepted, a signed JWT (ap2 13). `transaction`: of the
   * payment that settled.
   */
  accepted(reference: MandateReference, order: { readonly id: string; readonly transaction?: string }): string;
  /** The receipt of one that was refused. */
  rejected(reference: MandateReference, reason: Reason): string;
  /** For calls that pay nothing. */
  readonly register: MandateRegister;
}
