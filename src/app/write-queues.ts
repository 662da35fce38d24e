import type { EventDraft } from '../events/event.ts';
import type { Receipt } from '../receipts/receipt.ts';
import type { Store } from '../store/port/store.ts';
import { createWriteBehind, type WriteBehind } from '../store/port/write-behind.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';

/**
 * What waits for the store off the request path: events that no payment took along, and receipts of
 * free calls.
 */
export interface WriteQueues {
  readonly events: WriteBehind<EventDraft>;
  readonly receipts: WriteBehind<Receipt>;
  /** Sends what waits now. Never throws. */
  flush(): Promise<void>;
  /** Sends what waits, once. */
  close(): Promise<void>;
}

export function openWriteQueues(
  { feed, receipts: book }: Pick<Store, 'feed' | 'receipts'>,
  log: Log,
  metrics: Metrics,
): WriteQueues {
  const events = createWriteBehind<EventDraft>((batch, id) => feed.append(batch, id), lossless(log, metrics, 'event'));
  const receipts = createWriteBehind<Receipt>((batch) => book.write(batch), lossless(log, metrics, 'receipt'));
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

/** Losses in between are counted; a line for each would drown the log in what it reports. */
const DROPS_A_LINE = 1_000;

/**
 * A store that is away is worth one line, not one for each attempt; what is lost meanwhile is
 * counted and named.
 */
function lossless(log: Log, metrics: Metrics, what: 'event' | 'receipt') {
  return {
    onError: (cause: unknown) => log.warn({ err: cause }, `${what}s wait for the store`),
    onDrop: (entries: number, inAll: number) => {
      metrics.dropped(what, entries);
      if (inAll === entries || inAll % DROPS_A_LINE < entries) log.error({ dropped: inAll }, `${what}s are lost`);
    },
  };
}
