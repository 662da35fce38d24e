/**
 * Keeps the store: checks that one service uses it, writes entries off the request path, and drops
 * receipts past their bounds.
 */

import type { GatewayConfig } from '../config/document/config.ts';
import { isLoopbackUrl } from '../config/document/endpoints.ts';
import type { EventDraft } from '../events/event.ts';
import { createWriteBehind, type WriteBehind } from '../events/write-behind.ts';
import { ConfigError } from '../problems/problem.ts';
import type { Receipt, TrimmedReceipts } from '../receipts/receipt.ts';
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
  /** Ends housekeeping and logs drops since the last line. Resolves when no step runs. */
  stop(): Promise<void>;
}

/**
 * Drops receipts that are past their bounds and gives space back, in short steps once a minute. A
 * counter, and one log line a round for each bound, show the receipts that this process dropped.
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
    // A scrape without this gauge is better than none.
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

/** Queues of events that no payment writes, and of receipts of free calls. */
export interface WriteQueues {
  readonly events: WriteBehind<EventDraft>;
  readonly receipts: WriteBehind<Receipt>;
  /** Sends what waits now. Never throws. */
  flush(): Promise<void>;
  /** Sends what waits, once. */
  close(): Promise<void>;
}

/**
 * Most events in one batch: those of 160 free calls. A busy process sends one batch each 25 ms;
 * batches of 100 would be three, each with its own commit or round trip. Receipts keep to 100, the
 * most old ones that a write drops.
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

/** Lost entries between two log lines: a line for each would fill the log. */
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

/** The shared value that names the service of the store. */
const NAME = 'service';

/**
 * Compares the service with the one that the store was first used by. A store that does not answer
 * is logged and stops no start.
 * @throws ConfigError where the store is of another service
 */
export async function requireService(
  { secrets, name }: Pick<Store, 'secrets' | 'name'>,
  { id, publicBaseUrl, formerBaseUrls }: GatewayConfig['merchant'],
  log: Log,
): Promise<void> {
  const known = await secrets.agree(NAME, publicBaseUrl).catch((err: unknown) => {
    log.warn({ err }, 'the store does not say which service it belongs to');
    return publicBaseUrl;
  });
  if (known === publicBaseUrl || formerBaseUrls.includes(known)) return;
  if (name === 'sqlite' && areOfOneTrial(known, publicBaseUrl)) return;
  const message =
    `is ${publicBaseUrl}, and merchant.id ${id} in this store is the service at ${known}: give each service an id of its own. ` +
    'Where this service has moved, name its earlier address in merchant.formerBaseUrls';
  throw new ConfigError([{ path: 'merchant.publicBaseUrl', message }]);
}

/** Whether two URLs may be of one trial on one machine: its ports change from start to start. */
function areOfOneTrial(url: string, publicBaseUrl: string): boolean {
  return isLoopbackUrl(url) && isLoopbackUrl(publicBaseUrl);
}

/** Whether a URL is below an address of this service, present or former. */
export function isOfService(
  { publicBaseUrl, formerBaseUrls }: Pick<GatewayConfig['merchant'], 'publicBaseUrl' | 'formerBaseUrls'>,
  url: string,
): boolean {
  return (
    [publicBaseUrl, ...formerBaseUrls].some((base) => url.startsWith(`${base}/`)) || areOfOneTrial(url, publicBaseUrl)
  );
}
