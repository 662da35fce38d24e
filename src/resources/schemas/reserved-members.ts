/** The members of an input that belong to the gateway and never reach the backend. */

/** Carries a payment proof (specification 5). */
export const PAYMENT_MEMBER = '_payment';
/** Carries a mandate (ap2 7.1). */
export const AUTHORIZATION_MEMBER = '_authorization';
export const RESERVED_NAMES: ReadonlySet<string> = new Set([PAYMENT_MEMBER, AUTHORIZATION_MEMBER]);
