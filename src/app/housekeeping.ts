/** Keeps the store within its bounds in the background, and reports what was dropped. */

import type { TrimmedReceipts } from '../receipts/receipt.ts';
import type { Store } from '../store/documents/store.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { inTime } from '../time/time.ts';

/** Between two rounds, milliseconds. */
const EVERY_MS = 60_000;
/** Between two steps of one round, milliseconds: calls come first. */
const PAUSE_MS = 20;
/** Longest wait for the sizes of the lists, milliseconds. */
const COUNT_DEADLINE_MS = 300;

interface Housekeeping {
  /** Ends it and logs what was dropped since the last line. Resolves when no step runs. */
  stop(): Promise<void>;
}

/**
 * Drops receipts that are past their bounds and gives space back, in short steps once a minute.
 * What this process dropped is counted, and logged with one line a round, so that operators know
 * of it before they look for a dropped receipt.
 */
export function startHousekeeping(
  store: Pick<Store, 'tidy' | 'receipts'>,
  log: Pick<Log, 'info' | 'warn'>,
  metrics: Pick<Metrics, 'counter' | 'gauge'>,
  everyMs: number = EVERY_MS,
): Housekeeping {
  let announced: TrimmedReceipts = { length: 0, age: 0 };
  let stopped = false;
  let failed = false;
  let timer: NodeJS.Timeout | undefined;

  metrics.counter({
    name: 'acg_receipts_trimmed_total',
    help:
      'Receipts of delivered calls that this process dropped: length, over storage.receiptsMaxLength; age, past ' +
      'storage.receiptsMaxAgeDays. What is owed to a buyer is never dropped.',
    label: 'reason',
    read: () => ({ ...store.receipts.trimmed() }),
  });
  metrics.gauge({
    name: 'acg_receipts',
    help:
      'Receipts in the book, over all gateways of this merchant. done: delivered; owed: paid and not delivered, to be collected or ' +
      'refunded; uncertain: of these, where it is not known whether money moved or the answer arrived.',
    label: 'list',
    // A scrape without it is better than none.
    read: () => inTime(store.receipts.counts(), COUNT_DEADLINE_MS, () => ({})),
  });

  const announce = (): void => {
    const trimmed = store.receipts.trimmed();
    const [length, age] = [trimmed.length - announced.length, trimmed.age - announced.age];
    announced = trimmed;
    if (length > 0)
      log.warn(
        { dropped: length },
        'the oldest delivered receipts are dropped: there are more than storage.receiptsMaxLength',
      );
    if (age > 0) log.info({ dropped: age }, 'delivered receipts older than storage.receiptsMaxAgeDays are dropped');
  };
  const round = async (): Promise<void> => {
    try {
      while (!stopped && (await store.tidy())) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      failed = false;
    } catch (err) {
      // One line while the store is away: the next round tries again.
      if (!failed) log.warn({ err }, 'housekeeping waits for the store');
      failed = true;
    }
    announce();
  };
  let running: Promise<void> = Promise.resolve();
  const next = (): void => {
    timer = setTimeout(() => {
      running = round().finally(() => {
        if (!stopped) next();
      });
    }, everyMs).unref();
  };
  next();
  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
      announce();
    },
  };
}
