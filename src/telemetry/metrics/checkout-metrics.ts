/** Counts checkout operations, and logs what an operator or the merchant has to put right. */

import { Counter, Gauge, type Registry } from '@prometheus-io/client';
import type { ClaimOutcome, ClaimWatch } from '../../checkouts/attempts.ts';
import { UNKNOWNS, type Unknown } from '../../checkouts/claim-table.ts';
import type { Operation } from '../../checkouts/operations.ts';
import { type Log, throttled } from '../log/log.ts';

const OUTCOMES: readonly ClaimOutcome[] = [
  'first',
  'again',
  'done',
  'in_flight',
  'session_busy',
  'conflict',
  'unavailable',
];

/** Most JSON paths that are labels: a faulty backend must not fill the memory. */
export const MAX_POINTERS = 64;
const OTHER = 'other';

export type CheckoutMetrics = ReturnType<typeof checkoutMetrics>;

/** An alert on the growth of a counter needs its zero, so labels of closed lists begin with one. */
export function checkoutMetrics(registry: Registry) {
  const registers = [registry];
  const claims = new Counter({
    name: 'acg_checkout_claims_total',
    help:
      'Keyed checkout calls by the answer of the store: first, again (an earlier end is unknown), done (a kept answer), ' +
      'in_flight, session_busy, conflict (another body), unavailable (the store gave no answer, the backend was not called).',
    labelNames: ['outcome'] as const,
    registers,
  });
  for (const outcome of OUTCOMES) claims.inc({ outcome }, 0);
  const unknown = new Counter({
    name: 'acg_checkout_unknown_total',
    help: 'Attempts at the backend whose outcome is not known. The next call reads the session first.',
    labelNames: ['why'] as const,
    registers,
  });
  for (const why of UNKNOWNS) unknown.inc({ why }, 0);
  const counter = (name: string, help: string): Counter => new Counter({ name, help, registers });
  const leases = counter(
    'acg_checkout_leases_expired_total',
    'Attempts found whose lease had ended: a process died, or the store did not take their end.',
  );
  const fenced = counter(
    'acg_checkout_fenced_total',
    'Ends of attempts that were refused because another attempt had taken over.',
  );
  const unstored = counter(
    'acg_checkout_unstored_total',
    'Ends of attempts that the store did not take. Look at the store: repetitions wait for the lease, and then read the session.',
  );
  const unopened = counter(
    'acg_checkout_unopened_total',
    'Kept answers that could not be opened. Is a sealing key gone from storage.sealing.keys too early, or was a new one ' +
      'the first of one replica before it was last of all?',
  );
  const foreign = counter(
    'acg_checkout_foreign_sessions_total',
    "Creates that the backend answered with another client's session: the caller got 502. Session ids must be unique.",
  );
  const invalid = new Counter({
    name: 'acg_checkout_invalid_documents_total',
    help: 'Answers of the backend that were refused, by the JSON path that is wrong. The log has the reason, never the document.',
    labelNames: ['operation', 'pointer'] as const,
    registers,
  });
  const contradictions = new Counter({
    name: 'acg_checkout_contradictions_total',
    help: 'Valid answers of the backend that contradict themselves or the call. strictSemantics refuses them.',
    labelNames: ['operation', 'contradiction'] as const,
    registers,
  });
  let exchanges = 0;
  new Gauge({
    name: 'acg_checkout_exchanges_in_flight',
    help: 'Checkout calls that wait for the backend now.',
    registers,
    collect() {
      this.set(exchanges);
    },
  });
  const pointers = new Set<string>();
  return {
    claimed: (outcome: ClaimOutcome) => claims.inc({ outcome }),
    leaseExpired: () => leases.inc(),
    unknown: (why: Unknown) => unknown.inc({ why }),
    fenced: () => fenced.inc(),
    unstored: () => unstored.inc(),
    unopened: () => unopened.inc(),
    foreign: () => foreign.inc(),
    /** An exchange with the backend begins; the result is called when it is over. */
    exchanging() {
      exchanges += 1;
      return (): void => {
        exchanges -= 1;
      };
    },
    /** `where`: JSONPath of the wrong value. */
    invalidDocument(operation: Operation, where: string): void {
      const pointer = where.replace(/\[\d+\]/g, '[]');
      if (pointers.size < MAX_POINTERS) pointers.add(pointer);
      invalid.inc({ operation, pointer: pointers.has(pointer) ? pointer : OTHER });
    },
    contradiction: (operation: Operation, contradiction: string) => contradictions.inc({ operation, contradiction }),
  };
}

/** The call whose answer was wrong. */
interface CheckoutCall {
  readonly operation: Operation;
  readonly requestId: string;
  readonly callId: string;
}

/** A refused document of the backend, without any of its content. */
interface InvalidDocument extends CheckoutCall {
  readonly reason: string;
  readonly pointer: string;
  readonly keyword: string | undefined;
}

/** Observes claims, and the documents of the backend. */
export interface CheckoutWatch extends ClaimWatch {
  exchanging(): () => void;
  invalidDocument(found: InvalidDocument): void;
  contradiction(found: CheckoutCall & { readonly contradiction: string }): void;
}

/** Lines are limited to ten a second of a kind. */
export function watchCheckouts(metrics: { checkouts(): CheckoutMetrics }, log: Log): CheckoutWatch {
  const counts = metrics.checkouts();
  const throttle = throttled((kind, lines) => log.warn({ kind, lines }, 'as many more of these in this second'));
  return {
    ...counts,
    unstored(cause) {
      counts.unstored();
      throttle('unstored', () => log.warn({ err: cause }, 'the end of a checkout call is not kept'));
    },
    unopened() {
      counts.unopened();
      throttle('unopened', () => log.warn('a kept checkout answer cannot be opened: is its sealing key gone?'));
    },
    foreign() {
      counts.foreign();
      throttle('foreign', () =>
        log.error("the merchant opened a session that is another client's: its ids must be unique"),
      );
    },
    invalidDocument({ operation, requestId, callId, reason, pointer, keyword }) {
      counts.invalidDocument(operation, pointer);
      throttle('invalid_document', () =>
        log.warn(
          { requestId, callId, operation, reason, pointer, keyword },
          'the merchant answered with an invalid document',
        ),
      );
    },
    contradiction({ operation, requestId, callId, contradiction }) {
      counts.contradiction(operation, contradiction);
      throttle('contradiction', () =>
        log.warn(
          { requestId, callId, operation, contradiction },
          "the merchant's document contradicts itself or the call",
        ),
      );
    },
  };
}
