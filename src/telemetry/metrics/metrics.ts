/** All metrics of a gateway, in the text format of Prometheus. */

import { setTimeout as delay } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Registry } from '@prometheus-io/client';
import type { PaymentCensus } from '../../payments/ledger/document-ledger.ts';
import { inTime } from '../../time/time.ts';
import { type CallMetrics, callMetrics } from './call-metrics.ts';
import { type CheckoutMetrics, checkoutMetrics } from './checkout-metrics.ts';
import { createDurations } from './durations.ts';
import { type PaymentMetrics, type PricedIn, paymentMetrics } from './payment-metrics.ts';

/** Between two looks at the delay of the event loop, milliseconds. */
const EVENT_LOOP_LOOK_MS = 20;

let opened: Promise<Registry> | undefined;

/**
 * CPU, memory, garbage collection, event loop and descriptors, under the names that most
 * dashboards know. One registry a process, whatever the number of gateways in it: the observers
 * behind it cannot be stopped. They keep no process alive. Resolves after the first look at the
 * event loop: without one its delays have no minimum and no mean.
 */
function processMetrics(): Promise<Registry> {
  if (opened === undefined) {
    const registry = new Registry();
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_LOOK_MS });
    opened = delay(2 * EVENT_LOOP_LOOK_MS, registry, { ref: false });
  }
  return opened;
}

/** Entries that were lost, each with a line in the log. */
type Dropped = 'event' | 'receipt' | 'delivery';

/** A number of another module, read when scraped. Undefined: not known now, and not shown. */
interface Fact {
  /** In the style of Prometheus: `acg_`, then the thing, then its unit. */
  readonly name: string;
  readonly help: string;
  readonly read: () => number | undefined | Promise<number | undefined>;
}

/** A fact with one label, its values from a closed list: no caller can fill the memory. */
export interface LabelledFact extends Omit<Fact, 'read'> {
  readonly label: string;
  readonly read: () => Readonly<Record<string, number>> | Promise<Readonly<Record<string, number>>>;
}

/** A fact with any number of labels, their values from closed lists. */
interface FactWithLabels extends Omit<Fact, 'read'> {
  readonly labels: readonly string[];
  readonly read: () => readonly Reading[];
}

type AnyFact = Fact | LabelledFact | FactWithLabels;

export interface Metrics {
  readonly calls: CallMetrics;
  readonly payments: PaymentMetrics;
  /** Begins to count checkouts: called once, where they are served. */
  checkouts(): CheckoutMetrics;
  /** `event`, `receipt`: the queue was full. `delivery`: the end of a delivery was not written. */
  dropped(what: Dropped, count: number): void;
  /** A round of the reconciler failed, or it could not end a payment this time. */
  notReconciled(): void;
  /** Shows a number that goes up and down. */
  gauge(fact: AnyFact): void;
  /** Shows a number that only grows while the process lives; its name ends in `_total`. */
  counter(fact: AnyFact): void;
  readonly contentType: string;
  text(): Promise<string>;
}

interface MetricsParts {
  /** Whether a resource is in the catalogue. */
  readonly sold: (resourceId: string) => boolean;
  /** The tokens that paid resources are paid in now. */
  readonly offers: () => PricedIn;
  readonly census: () => Promise<PaymentCensus>;
}

/** Each gateway has a registry of its own, so that several in one process do not share counters. */
export function createMetrics({ sold, offers, census }: MetricsParts): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const durations = createDurations();
  const drops = new Counter({
    name: 'acg_dropped_total',
    help: 'Entries that should have been kept and were not; each has a line in the log.',
    labelNames: ['what'] as const,
    registers,
  });
  // An unused label is not shown: an alert on its growth needs the zero.
  for (const what of ['event', 'receipt', 'delivery'] satisfies Dropped[]) drops.inc({ what }, 0);
  const attempts = new Counter({
    name: 'acg_reconcile_failures_total',
    help: 'Payments that the reconciler could not bring to an end this time, and looks at the store that failed.',
    registers,
  });
  censusMetrics(registry, census);
  return {
    calls: callMetrics(registry, durations),
    payments: paymentMetrics(registry, durations, sold, offers),
    checkouts: () => checkoutMetrics(registry),
    dropped: (what, count) => drops.inc({ what }, count),
    notReconciled: () => attempts.inc(),
    ...factsIn(registry),
    contentType: registry.contentType,
    text: async () => [await registry.metrics(), durations.text(), await (await processMetrics()).metrics()].join('\n'),
  };
}

function factsIn(registry: Registry): Pick<Metrics, 'gauge' | 'counter'> {
  const registers = [registry];
  return {
    gauge(fact) {
      new Gauge({
        ...named(fact),
        registers,
        collect() {
          return show(this, fact, (labels, value) => this.set(labels, value));
        },
      });
    },
    counter(fact) {
      new Counter({
        ...named(fact),
        registers,
        collect() {
          return show(this, fact, (labels, value) => this.inc(labels, value));
        },
      });
    },
  };
}

export type Reading = readonly [labels: Record<string, string>, value: number];

function named(fact: AnyFact): {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
} {
  const { name, help } = fact;
  return { name, help, labelNames: labelsOf(fact) };
}

function labelsOf(fact: AnyFact): string[] {
  if ('labels' in fact) return [...fact.labels];
  return 'label' in fact ? [fact.label] : [];
}

/** Shows the values of now, and none of an earlier scrape. */
async function show(
  metric: { reset(): void; remove(): void },
  fact: AnyFact,
  put: (...reading: Reading) => void,
): Promise<void> {
  // A fact that cannot be read must not fail the whole scrape.
  const found = await read(fact).catch(() => []);
  metric.reset();
  // Without a label `reset` shows 0, which was not read.
  if (found.length === 0 && labelsOf(fact).length === 0) metric.remove();
  for (const reading of found) put(...reading);
}

async function read(fact: AnyFact): Promise<readonly Reading[]> {
  if ('labels' in fact) return fact.read();
  if ('label' in fact)
    return Object.entries(await fact.read()).map(([value, found]) => [{ [fact.label]: value }, found]);
  const found = await fact.read();
  return found === undefined ? [] : [[{}, found]];
}

/** Between two counts, milliseconds: all scrapes in between share one. */
const COUNT_EVERY_MS = 5_000;
/** Longest wait for a count, milliseconds; a scrape without these gauges is better than none. */
const COUNT_DEADLINE_MS = 300;

/** Counts open payments when scraped. Every gateway of the merchant shows the same numbers. */
export function censusMetrics(
  registry: Registry,
  census: () => Promise<PaymentCensus>,
  now: () => number = () => performance.now(),
): void {
  const registers = [registry];
  const failures = new Counter({
    name: 'acg_census_failures_total',
    help: 'Scrapes without the gauges of open payments, because the store did not count them within 300 ms.',
    registers,
  });
  const counts = memoised(census, now);
  const gauge = (name: string, help: string, of: (found: PaymentCensus) => number): void => {
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        const found = await counts();
        if (found !== undefined) this.set(of(found));
        // No value is better than an old one or a 0.
        else this.remove();
      },
    });
  };
  gauge(
    'acg_payments_open',
    'Payments that are not at an end, over all gateways of this merchant.',
    ({ open }) => open,
  );
  gauge(
    'acg_payments_uncertain',
    'Settlements whose outcome no process is finding out at this moment, of the first 1,000 open payments. More than a moment ' +
      'above 0: the chain node or the facilitator does not answer.',
    ({ uncertain }) => uncertain,
  );
  gauge(
    'acg_payments_undelivered',
    'Paid, and neither delivered nor kept for the buyer to fetch, of the first 1,000 open payments. The backend or the gateway ' +
      'failed, or the buyer left too early: the same proof collects, or a refund is due.',
    ({ undelivered }) => undelivered,
  );

  function memoised(
    count: () => Promise<PaymentCensus>,
    clock: () => number,
  ): () => Promise<PaymentCensus | undefined> {
    let asked: Promise<PaymentCensus | undefined> | undefined;
    let askedAt = 0;
    return () => {
      if (asked !== undefined && clock() - askedAt < COUNT_EVERY_MS) return asked;
      askedAt = clock();
      const counted = inTime(count(), COUNT_DEADLINE_MS, () => undefined).catch(() => undefined);
      asked = counted.then((found) => {
        if (found === undefined) failures.inc();
        return found;
      });
      return asked;
    };
  }
}
