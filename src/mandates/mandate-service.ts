/** What the pipeline asks about mandates; `app/open-mandates.ts` makes it from the AP2 modules. */

import type { Purchase } from './ap2/model/purchase.ts';
import type { MandateReference, MandateVerdict, Reason } from './ap2/model/reasons.ts';
import type { CarriedMandate } from './ap2/token/envelope.ts';
import type { MandateRegister } from './register/register.ts';

/** Each answer reads the clock once. */
export interface MandateService {
  /** The currency in which a free resource costs nothing. */
  readonly freeCurrency: string;
  /** `authorization` as JSON text (ap2 7.4): the mandate that is needed, and a fresh checkout. */
  challenge(purchase: Purchase): string;
  /** Whether what a call carried is a mandate for this purchase. Writes nothing, never rejects. */
  verify(carried: CarriedMandate, purchase: Purchase): Promise<MandateVerdict>;
  /**
   * The receipt of an accepted mandate, a signed JWT (ap2 13). `transaction`: of the settled
   * payment.
   */
  accepted(reference: MandateReference, order: { readonly id: string; readonly transaction?: string }): string;
  /** The receipt of a refused mandate. */
  rejected(reference: MandateReference, reason: Reason): string;
  /** For calls that pay nothing. */
  readonly register: MandateRegister;
}
