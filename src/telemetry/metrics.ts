import { Counter, Registry } from 'prom-client';

/** What should have been kept and was not, each with a line in the log. */
export type Dropped = 'event' | 'receipt' | 'delivery';

/** Counters of the process in the text format of Prometheus. */
export interface Metrics {
  /** `event`, `receipt`: the waiting queue was full. `delivery`: how a paid call ended could not be written; its lease will end. */
  dropped(what: Dropped, count: number): void;
  /** A round of the reconciler that failed, or a payment that it could not bring to an end this time. */
  notReconciled(): void;
  readonly contentType: string;
  text(): Promise<string>;
}

/** Each gateway has a registry of its own, so that several in one process do not count for each other. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const drops = new Counter({
    name: 'acg_dropped_total',
    help: 'Entries that should have been kept and were not; each has a line in the log.',
    labelNames: ['what'] as const,
    registers,
  });
  // A counter that was never touched is not shown: an alert on its growth needs the zero.
  for (const what of ['event', 'receipt', 'delivery'] satisfies Dropped[]) drops.inc({ what }, 0);
  const attempts = new Counter({
    name: 'acg_reconcile_failures_total',
    help: 'Payments that the reconciler could not bring to an end this time, and looks at the store that failed.',
    registers,
  });
  return {
    dropped: (what, count) => drops.inc({ what }, count),
    notReconciled: () => attempts.inc(),
    contentType: registry.contentType,
    text: () => registry.metrics(),
  };
}
