import type { CheckoutClaims } from '../../../src/checkouts/claims.ts';
import type { Work } from '../../../src/checkouts/idempotency.ts';
import type { IdempotencySettings } from '../../../src/checkouts/settings.ts';
import type { Time } from '../../../src/time/time.ts';

/**
 * What the merchant is like, and with it what the machine may rely on (acp 12.5). `tells`: looks at
 * no key, acts within the timeout or says that it is at it, and can always be read. `settles`:
 * looks at no key, may act long after the timeout, says nothing meanwhile, and can often not be
 * read: read-back-only. `deduplicates`: goes by keys, may act whenever it likes, and can often not
 * be read.
 */
export type Manner = 'tells' | 'settles' | 'deduplicates';

/** A wrong machine, made of ports that do something else: the laws must notice it. */
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
