/** Watches what readiness depends on, and shows at `/metrics` what a process knows of itself. */

import release from '../../package.json' with { type: 'json' };
import { type Monitor, startMonitor, watched } from '../telemetry/health/monitor.ts';
import { healthLog } from '../telemetry/log/log.ts';
import { linesLost } from '../telemetry/log/standard-output.ts';
import type { GatewayParts, InUse, Services } from './open-services.ts';

/** The values of `acg_component_status`. */
const STATUS = { pass: 0, warn: 1, fail: 2 } as const;

/** The states of `acg_lifecycle`. */
const NOWHERE = { open: 0, fenced: 0, draining: 0, drained: 0 } as const;

function positionOf({ lifecycle, fence }: Services): keyof typeof NOWHERE {
  const state = lifecycle.state();
  if (state === 'open') return fence.up() ? 'fenced' : 'open';
  return state === 'drained' ? 'drained' : 'draining';
}

/**
 * Starts the checks of readiness and shows them at `/metrics`. `inUse` has the first configuration.
 */
export function startMonitoring(parts: GatewayParts, services: Services, inUse: InUse): Monitor {
  const { lifecycle, fence, ingress, backend, loadShedding } = services;
  const { mandates } = inUse;
  const monitor = startMonitor({
    ...watched({
      ...parts,
      // A reload may change the trusted issuers, but not whether mandates are accepted.
      trust: mandates && { check: () => (inUse.mandates ?? mandates).trust.check() },
    }),
    gate: lifecycle,
    fenced: () => fence.up(),
    bypassed: ingress.exposed,
    backendReachable: backend.reachable,
    faulty: () => loadShedding.lost() > 0,
    onChange: healthLog(parts.log),
  });
  showProcessGauges(services, monitor, inUse);
  return monitor;
}

function showProcessGauges(services: Services, monitor: Monitor, inUse: InUse): void {
  const { lifecycle, fence, tracing, events, receipts, store, stream, loadShedding, budget } = services;
  const { gauge, counter } = services.metrics;
  gauge({
    name: 'acg_build_info',
    help: 'Always 1; the release is in the label.',
    label: 'version',
    read: () => ({ [release.version]: 1 }),
  });
  gauge({
    name: 'acg_config_loaded_timestamp_seconds',
    help: 'When this process read its configuration. If it is older than your last change, that change is not active.',
    read: () => inUse.loadedAtMs / 1_000,
  });
  counter({
    name: 'acg_sealed_unreadable_total',
    help: 'Reads of what is sealed in the store that no key of storage.sealing.keys opens, by what it is. The log has the payment.',
    label: 'what',
    read: () => store.unreadable?.() ?? {},
  });
  gauge({
    name: 'acg_draining',
    help: '1 while the process serves its last calls and readiness fails.',
    read: () => (lifecycle.draining() ? 1 : 0),
  });
  gauge({
    name: 'acg_lifecycle',
    help: 'Where the process is: 1 at one of open, fenced (the backend restarts alone, calls wait), draining, drained.',
    label: 'state',
    read: () => ({ ...NOWHERE, [positionOf(services)]: 1 }),
  });
  gauge({
    name: 'acg_fence_held',
    help: 'Calls that wait while the backend restarts, two seconds at most.',
    read: () => fence.facts().held,
  });
  counter({
    name: 'acg_fence_calls_total',
    help: 'Calls that met a backend which restarts: went_on after a wait; refused before any money moved.',
    label: 'end',
    read: () => ({ went_on: fence.facts().wentOn, refused: fence.facts().refused }),
  });
  gauge({
    name: 'acg_component_status',
    help: 'What /ready says of each component: 0 pass, 1 warn, 2 fail. The cause is in the log line "health".',
    label: 'component',
    async read() {
      const { store, backend, adapters, paymentProviders, authorizationProviders } = await monitor.readiness();
      return Object.fromEntries(
        [store, backend, ...adapters, ...paymentProviders, ...authorizationProviders].map(({ name, status }) => [
          name,
          STATUS[status],
        ]),
      );
    },
  });
  gauge({
    name: 'acg_waiting_entries',
    help: 'Events and receipts that wait for the store. At 10,000 the oldest are dropped; see acg_dropped_total.',
    label: 'what',
    read: () => ({ event: events.waiting(), receipt: receipts.waiting() }),
  });
  counter({
    name: 'acg_log_lines_lost_total',
    help: 'Lines of the log that nothing read in time: 8 MiB wait for a reader, what comes then is lost. Look at what collects the log.',
    read: linesLost,
  });
  counter({
    name: 'acg_spans_lost_total',
    help: 'Spans that the collector of traces did not get. Calls do not wait for it; look at the collector.',
    label: 'reason',
    read: () => tracing.lost(),
  });
  gauge({
    name: 'acg_calls_in_flight',
    help: 'Calls that have a slot. At limits.maxInFlight the next ones wait for a second, and are refused then.',
    read: () => loadShedding.slots.inFlight(),
  });
  gauge({
    name: 'acg_calls_waiting',
    help: 'Calls that wait for their turn, a second at most. Hundreds for long: add replicas.',
    read: () => loadShedding.waiting(),
  });
  counter({
    name: 'acg_shed_total',
    help: 'Calls refused unread after their wait. overload: the process is behind; in_flight: no slot. Add replicas.',
    label: 'reason',
    read: () => ({ ...loadShedding.shed() }),
  });
  gauge({
    name: 'acg_answer_buffer_bytes',
    help: 'Memory given out for answers that MCP and A2A hold as a whole; limits.maxBufferedBytes is all there is.',
    read: () => budget.taken,
  });
  gauge({
    name: 'acg_answer_buffer_waiting',
    help: 'Answers that wait for such memory. Above 0 for long: answers are large or their readers slow.',
    read: () => budget.waiting,
  });
  gauge({
    name: 'acg_event_streams',
    help: 'Readers of the event stream now; limits.maxStreams is all there is.',
    read: () => stream.facts().readers,
  });
  counter({
    name: 'acg_event_streams_cut_total',
    help: 'Readers of the event stream that were too slow and were cut. They resume where they were.',
    read: () => stream.facts().cut,
  });
  gauge({
    name: 'acg_event_stream_silence_seconds',
    help: 'Since the event stream last read from the store; up to 5 in quiet times, 0 without readers.',
    read: () => stream.facts().silentMs / 1_000,
  });
}
