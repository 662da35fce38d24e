import type { CheckoutClaims } from '../../src/checkouts/claims.ts';
import type { Work } from '../../src/checkouts/idempotency.ts';
import type { IdempotencySettings } from '../../src/checkouts/settings.ts';
import type { Time } from '../../src/time/time.ts';

/**
 * How the backend behaves, and so what the machine may rely on (acp 12.5). `reports`: ignores keys,
 * acts within the timeout or shows that it works, and can always be read. `settles`: ignores keys,
 * may act long after the timeout without a sign of it, and often cannot be read: read-back-only.
 * `deduplicates`: uses keys, may act at any time, and often cannot be read.
 */
export type Manner = 'reports' | 'settles' | 'deduplicates';

/** A wrong machine, which the laws must notice. */
export interface Mutant {
  readonly name: string;
  /** One of the laws that it breaks. */
  readonly shows: RegExp;
  readonly settings?: Partial<IdempotencySettings>;
  claims?(claims: CheckoutClaims): CheckoutClaims;
  work?(work: Work<string>): Work<string>;
  time?(time: Time): Time;
}

export const NO_MUTANT: Mutant = { name: 'none', shows: /./ };

/** Of every operation, milliseconds. */
export const TIMEOUT_MS = 25_000;
