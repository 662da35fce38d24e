import release from '../package.json' with { type: 'json' };
import type { Monitor } from './probes/monitor.ts';
import type { Lifecycle } from './sidecar/lifecycle.ts';
import type { Metrics } from './telemetry/metrics.ts';
import type { Tracing } from './telemetry/tracing.ts';

/** What a gateway shows of itself beside its calls; everything here is known already and only read. */
export interface VitalSigns {
  readonly lifecycle: Pick<Lifecycle, 'draining'>;
  readonly monitor: Pick<Monitor, 'readiness'>;
  readonly tracing: Pick<Tracing, 'lost'>;
  /** Entries that wait for the store. */
  readonly waiting: Readonly<Record<'event' | 'receipt', () => number>>;
}

/** `acg_component_status`: what a check of `/ready` says. */
const STATUS = { pass: 0, warn: 1, fail: 2 } as const;

/** Shows them at `/metrics`. */
export function showVitalSigns({ gauge, counter }: Metrics, signs: VitalSigns): void {
  const { lifecycle, monitor, tracing, waiting } = signs;
  const loadedAt = Date.now() / 1_000;
  gauge({
    name: 'acg_build_info',
    help: 'Always 1; the release is in the label.',
    label: 'version',
    read: () => ({ [release.version]: 1 }),
  });
  gauge({
    name: 'acg_config_loaded_timestamp_seconds',
    help: 'When this process read its configuration. Older than your last change: it still runs the one before.',
    read: () => loadedAt,
  });
  gauge({
    name: 'acg_draining',
    help: '1 while the process serves its last calls and readiness fails.',
    read: () => (lifecycle.draining() ? 1 : 0),
  });
  gauge({
    name: 'acg_component_status',
    help: 'What /ready says of each component: 0 pass, 1 warn, 2 fail. The cause is in the log line "health".',
    label: 'component',
    async read() {
      const { store, adapters, paymentProviders } = await monitor.readiness();
      return Object.fromEntries(
        [store, ...adapters, ...paymentProviders].map(({ name, status }) => [name, STATUS[status]]),
      );
    },
  });
  gauge({
    name: 'acg_waiting_entries',
    help: 'Events and receipts that wait for the store. At 10,000 the oldest are dropped; see acg_dropped_total.',
    label: 'what',
    read: () => ({ event: waiting.event(), receipt: waiting.receipt() }),
  });
  counter({
    name: 'acg_spans_lost_total',
    help: 'Spans that the collector of traces did not get. Calls do not wait for it; look at the collector.',
    label: 'reason',
    read: () => tracing.lost(),
  });
}
