import { Counter, Gauge, type Registry } from 'prom-client';
import { UNKNOWNS, type Unknown } from '../../checkouts/claims.ts';
import type { ClaimOutcome, ClaimWatch } from '../../checkouts/idempotency.ts';
import type { Operation } from '../../checkouts/operations.ts';
import type { Log } from '../log/log.ts';
import { throttled } from '../log/log-throttle.ts';

/** Counts checkouts. */
export interface CheckoutMetrics {
  claimed(outcome: ClaimOutcome): void;
  leaseExpired(): void;
  unknown(why: Unknown): void;
  fenced(): void;
  unstored(): void;
  unopened(): void;
  foreign(): void;
  /** An exchange with the merchant begins; the result is called when it is over. */
  exchanging(): () => void;
  /** `pointer`: JSONPath of what is wrong. */
  invalidDocument(operation: Operation, pointer: string): void;
  contradiction(operation: Operation, contradiction: string): void;
}

const OUTCOMES: readonly ClaimOutcome[] = [
  'first',
  'again',
  'done',
  'in_flight',
  'session_busy',
  'conflict',
  'unavailable',
];

/**
 * Places in documents that are told apart; a merchant who finds more ways to be wrong must not fill
 * the memory.
 */
export const MAX_POINTERS = 64;
const OTHER = 'other';

/**
 * Registers them. An alert on the growth of a counter needs its zero, so labels of closed lists
 * begin with one.
 */
export function checkoutMetrics(registry: Registry): CheckoutMetrics {
  const registers = [registry];
  const claims = new Counter({
    name: 'acg_checkout_claims_total',
    help:
      'Keyed checkout calls by what the store said: first, again (an earlier end is unknown), done (answered from what is kept), ' +
      'in_flight, session_busy, conflict (another body), unavailable (the store gave no answer, the merchant was not called).',
    labelNames: ['outcome'] as const,
    registers,
  });
  for (const outcome of OUTCOMES) claims.inc({ outcome }, 0);
  const unknown = new Counter({
    name: 'acg_checkout_unknown_total',
    help: 'Attempts at the merchant that ended so that nobody knows what became of them. The next call reads the session first.',
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
    "Creates that the merchant answered with another client's session: the caller was told 502. Session ids must be unique.",
  );
  const invalid = new Counter({
    name: 'acg_checkout_invalid_documents_total',
    help: 'Answers of the merchant that were refused, by the place that is wrong. The log has the reason, never the document.',
    labelNames: ['operation', 'pointer'] as const,
    registers,
  });
  const contradictions = new Counter({
    name: 'acg_checkout_contradictions_total',
    help: 'Valid answers of the merchant that contradict themselves or the call. strictSemantics refuses them.',
    labelNames: ['operation', 'contradiction'] as const,
    registers,
  });
  let exchanges = 0;
  new Gauge({
    name: 'acg_checkout_exchanges_in_flight',
    help: 'Checkout calls that wait for the merchant now.',
    registers,
    collect() {
      this.set(exchanges);
    },
  });
  const pointers = new Set<string>();
  return {
    claimed: (outcome) => claims.inc({ outcome }),
    leaseExpired: () => leases.inc(),
    unknown: (why) => unknown.inc({ why }),
    fenced: () => fenced.inc(),
    unstored: () => unstored.inc(),
    unopened: () => unopened.inc(),
    foreign: () => foreign.inc(),
    exchanging() {
      exchanges += 1;
      return () => {
        exchanges -= 1;
      };
    },
    invalidDocument(operation, where) {
      const pointer = where.replace(/\[\d+\]/g, '[]');
      if (pointers.size < MAX_POINTERS) pointers.add(pointer);
      invalid.inc({ operation, pointer: pointers.has(pointer) ? pointer : OTHER });
    },
    contradiction: (operation, contradiction) => contradictions.inc({ operation, contradiction }),
  };
}

/** Who asked the merchant, and for what. */
interface Asked {
  readonly operation: Operation;
  readonly requestId: string;
  readonly callId: string;
}

/** A document of the merchant's that was refused. Nothing that stands in it is among these. */
interface InvalidDocument extends Asked {
  readonly reason: string;
  readonly pointer: string;
  readonly keyword: string | undefined;
}

/** Told of what happens to claims, and of what the merchant does. */
export interface CheckoutWatch extends ClaimWatch {
  exchanging(): () => void;
  invalidDocument(found: InvalidDocument): void;
  contradiction(found: Asked & { readonly contradiction: string }): void;
}

/**
 * Counts everything, and writes a line for what an operator or the merchant has to put right, ten a
 * second of a kind.
 */
export function watchCheckouts(metrics: { checkouts(): CheckoutMetrics }, log: Log): CheckoutWatch {
  const counts = metrics.checkouts();
  const spare = throttled((kind, lines) => log.warn({ kind, lines }, 'as many more of these in this second'));
  return {
    ...counts,
    unstored(cause) {
      counts.unstored();
      spare('unstored', () => log.warn({ err: cause }, 'the end of a checkout call is not kept'));
    },
    unopened() {
      counts.unopened();
      spare('unopened', () => log.warn('a kept checkout answer cannot be opened: is its sealing key gone?'));
    },
    foreign() {
      counts.foreign();
      spare('foreign', () =>
        log.error("the merchant opened a session that is another client's: its ids must be unique"),
      );
    },
    invalidDocument({ operation, requestId, callId, reason, pointer, keyword }) {
      counts.invalidDocument(operation, pointer);
      spare('invalid_document', () =>
        log.warn(
          { requestId, callId, operation, reason, pointer, keyword },
          'the merchant answered with an invalid document',
        ),
      );
    },
    contradiction({ operation, requestId, callId, contradiction }) {
      counts.contradiction(operation, contradiction);
      spare('contradiction', () =>
        log.warn(
          { requestId, callId, operation, contradiction },
          "the merchant's document contradicts itself or the call",
        ),
      );
    },
  };
}
