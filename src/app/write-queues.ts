/** Opens the queues of entries that are written to the store off the request path. */

import type { EventDraft } from '../events/event.ts';
import { createWriteBehind, type WriteBehind } from '../events/write-behind.ts';
import type { Receipt } from '../receipts/receipt.ts';
import type { Store } from '../store/documents/store.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';

/** Events that no payment took along, and receipts of free calls. */
export interface WriteQueues {
  readonly events: WriteBehind<EventDraft>;
  readonly receipts: WriteBehind<Receipt>;
  /** Sends what waits now. Never throws. */
  flush(): Promise<void>;
  /** Sends what waits, once. */
  close(): Promise<void>;
}

/**
 * Events in one batch: those of 160 free calls. A busy process sends one each 25 ms, where batches
 * of 100 would be three, each with a commit or a round trip of its own. Receipts keep to 100: a
 * write that drops old ones drops no more.
 */
const EVENTS_AT_ONCE = 500;

/** Both queues send in one turn of the event loop: an embedded store commits once for both. */
export function openWriteQueues(
  { feed, receipts: book }: Pick<Store, 'feed' | 'receipts'>,
  log: Log,
  metrics: Metrics,
): WriteQueues {
  const events: WriteBehind<EventDraft> = createWriteBehind((batch, id) => feed.append(batch, id), {
    ...lossReports(log, metrics, 'event'),
    batchSize: EVENTS_AT_ONCE,
    onSending: () => receipts.join(),
  });
  const receipts: WriteBehind<Receipt> = createWriteBehind((batch) => book.write(batch), {
    ...lossReports(log, metrics, 'receipt'),
    onSending: () => events.join(),
  });
  return {
    events,
    receipts,
    async flush() {
      await Promise.all([events.flush(), receipts.flush()]);
    },
    async close() {
      await Promise.all([events.close(), receipts.close()]);
    },
  };
}

/** Between two log lines losses are only counted: a line for each would fill the log. */
const DROPS_A_LINE = 1_000;

/** Logs once that entries wait for a store that is away; counts and logs those that are lost. */
function lossReports(log: Log, metrics: Metrics, what: 'event' | 'receipt') {
  return {
    onError: (cause: unknown) => log.warn({ err: cause }, `${what}s wait for the store`),
    onDrop: (entries: number, inAll: number) => {
      metrics.dropped(what, entries);
      if (inAll === entries || inAll % DROPS_A_LINE < entries) log.error({ dropped: inAll }, `${what}s are lost`);
    },
  };
}
