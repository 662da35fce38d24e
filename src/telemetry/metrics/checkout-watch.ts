import type { ClaimWatch } from '../../checkouts/idempotency.ts';
import type { Operation } from '../../checkouts/operations.ts';
import type { Log } from '../log/log.ts';
import { throttled } from '../log/log-throttle.ts';
import type { CheckoutMetrics } from './checkout-metrics.ts';

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

/** Counts everything, and writes a line for what an operator or the merchant has to put right, ten a second of a kind. */
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
