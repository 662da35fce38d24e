/**
 * Opens what a gateway has once, however often its configuration is loaded: what keeps state or
 * connections. It reads limits and settings from the present configuration where it uses them.
 */

import type { GatewayConfig } from '../config/document/config.ts';
import { openEventStream } from '../operator/api/stream.ts';
import type { RequestLine, Route } from '../passthrough/route.ts';
import type { X402Rail } from '../payments/x402/create-rail.ts';
import type { Offers } from '../payments/x402/wire/offers.ts';
import { PAYMENT_SIGNATURE } from '../payments/x402/wire/types.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import { idPrefixes } from '../server/http/request-id.ts';
import { createAnswerBudget } from '../server/limits/answer-budget.ts';
import { clientNetwork, wideNetwork } from '../server/limits/client-address.ts';
import { openLoadShedder, ProofStanding } from '../server/limits/load-shedder.ts';
import type { AppProbeSettings } from '../sidecar/app-probe-settings.ts';
import { createFence } from '../sidecar/fence.ts';
import { createLifecycle } from '../sidecar/lifecycle.ts';
import type { Store } from '../store/documents/store.ts';
import { type Monitor, startMonitor, watched } from '../telemetry/health/monitor.ts';
import { failureLog, healthLog, type Log } from '../telemetry/log/log.ts';
import { watchOver } from '../telemetry/metrics/call-metrics.ts';
import { createMetrics } from '../telemetry/metrics/metrics.ts';
import { PASSED_ON, type Tracing } from '../telemetry/traces/tracing.ts';
import { allExchanges } from './exchanges.ts';
import { startHousekeeping } from './housekeeping.ts';
import { openIngressCounts } from './ingress-guards.ts';
import { loadAdapters } from './mount-adapters.ts';
import type { OpenMandates } from './open-ap2.ts';
import { openBackend } from './open-backend.ts';
import { createMandateOpener } from './open-mandates.ts';
import { openDeliveryRecorder, openPayments } from './open-payments.ts';
import { showProcessGauges } from './process-gauges.ts';
import { requireService } from './service-identity.ts';
import { openWriteQueues } from './write-queues.ts';

/** How long the last calls may take to write down how they ended, milliseconds. */
const WRITE_DOWN_MS = 2_000;

const OWN: Route = { kind: 'own' };
const NO_OFFERS: Offers = new Map();

/** What a gateway is made of; the caller opened it and closes it. */
export interface GatewayParts {
  readonly config: GatewayConfig;
  readonly store: Store;
  /** Undefined when nothing has a price. */
  readonly rail: X402Rail | undefined;
  readonly log: Log;
  /** Undefined: no collector takes traces. */
  readonly tracing?: Tracing;
  /** Probes of the merchant's container that are repeated here; none unless given. */
  readonly appProbes?: AppProbeSettings;
  /** The share of the time that the event loop worked since the last call; its own unless given. */
  readonly busy?: () => number;
}

/** What of the present configuration is asked for while the process runs. */
export interface Present {
  readonly config: GatewayConfig;
  /** When it was loaded, Unix milliseconds. */
  readonly loadedAtMs: number;
  readonly catalogue: Catalogue;
  readonly offers: Offers;
  readonly mandates: OpenMandates | undefined;
  /** Undefined: all requests are the gateway's own. */
  readonly routeOf: ((req: RequestLine) => Route) | undefined;
}

/** Loads what the configuration enables and nothing else: to enable more needs a restart. */
async function loadEnabled(config: GatewayConfig, store: Store) {
  const { backend, protocols } = config;
  return {
    checkouts: protocols.acp.enabled ? await import('./open-acp.ts') : undefined,
    passing: backend.passthrough === undefined ? undefined : await import('./open-passthrough.ts'),
    loadedAdapters: await loadAdapters(protocols),
    mandateOpener: await createMandateOpener(config, store.mandates),
  };
}

/** Everything that outlives a configuration, open. */
export type Process = Awaited<ReturnType<typeof openProcess>>;

/** `present`: undefined until the first configuration is in use. */
export async function openProcess(parts: GatewayParts, present: () => Present | undefined) {
  const { store, log, tracing = PASSED_ON } = parts;
  // What is opened here may read the configuration before anything is made of it.
  const now = (): GatewayConfig => present()?.config ?? parts.config;
  // All is loaded before a connection is opened: loading holds up the answers to deadlines.
  const { checkouts, passing, loadedAdapters, mandateOpener } = await loadEnabled(now(), store);
  await requireService(store, now().merchant, log);
  const lifecycle = createLifecycle();
  const fence = createFence();
  const metrics = createMetrics({
    sold: (id) => present()?.catalogue.byId.has(id) === true,
    offers: () => present()?.offers ?? NO_OFFERS,
    census: () => store.census(),
  });
  const ledger = metrics.payments.ledger(store.ledger);
  const writeQueues = openWriteQueues(store, log, metrics);
  const { events, receipts } = writeQueues;
  const housekeeping = startHousekeeping(store, log, metrics);
  const ingress = openIngressCounts(now, log, metrics);
  const backend = openBackend(now, fence, log, metrics);
  const deliveries = openDeliveryRecorder(now, ledger, log, metrics);
  const proofs = new ProofStanding(wideNetwork((req) => clientNetwork(now().server.trustProxy)(req)));
  const shared = { lifecycle, fence, ledger, events, deliveries, backend, log, metrics };
  const payments = openPayments({
    ...shared,
    now,
    rail: parts.rail,
    work: parts.store.work,
    noteProof: proofs.note,
  });
  const stream = openEventStream({
    feed: store.feed,
    gate: lifecycle,
    get maxStreams() {
      return now().limits.maxStreams;
    },
    clientOf: (req) => clientNetwork(now().server.trustProxy)(req),
    onTrouble: (cause) => log.warn({ err: cause }, 'event streams wait for the store'),
  });
  const mounts = idPrefixes(now().protocols);
  const routeOf = (req: RequestLine): Route => present()?.routeOf?.(req) ?? OWN;
  const loadShedding = openLoadShedder({
    maxInFlight: () => now().limits.maxInFlight,
    mounts,
    lifecycle,
    carriesProof: ({ headers }) => headers[PAYMENT_SIGNATURE] !== undefined,
    proofs,
    routeOf,
    onShed: (shed) => log.warn({ shed }, 'busy: calls were refused'),
    onLost: (slots) => log.error({ slots }, 'a bug: slots outlived the longest call and are free again; restart'),
    ...(parts.busy === undefined ? {} : { busy: parts.busy }),
  });
  const budget = createAnswerBudget(() => now().limits.maxBufferedBytes);
  const watch = watchOver(metrics.calls, tracing);
  const onFailure = failureLog(log);
  const acp = checkouts?.openAcp(now, { ...shared, store, receipts, loadShedding, watch, onFailure });
  const settings = now().backend.passthrough;
  const passthrough =
    settings &&
    passing?.openPassthrough({
      ...{ now, settings, routeOf, lifecycle, fence, log, metrics, onFailure },
      busy: loadShedding.busy,
    });
  const exchanges = allExchanges(backend, acp?.connection, passthrough);
  return {
    ...{ ...shared, store, receipts, mounts, ingress, payments, stream, loadShedding, budget, watch, onFailure },
    ...{ acp, passthrough, exchanges, loadedAdapters, mandateOpener, writeQueues, housekeeping, tracing },
  };
}

/**
 * Looks at what readiness depends on, and shows it at `/metrics`. `process`: of the same gateway;
 * the first configuration is in use.
 */
export function startMonitoring(parts: GatewayParts, process: Process, present: () => Present): Monitor {
  const { store, log } = parts;
  const { lifecycle, fence, ingress, backend, metrics, events, receipts, stream, loadShedding, budget, tracing } =
    process;
  const { mandates } = present();
  const { exposed } = ingress;
  const monitor = startMonitor({
    ...watched({
      ...parts,
      // Which issuers are trusted may change; whether mandates are accepted does not.
      trust: mandates && { check: () => (present().mandates ?? mandates).trust.check() },
    }),
    gate: lifecycle,
    fenced: () => fence.up(),
    bypassed: exposed,
    backendReachable: backend.reachable,
    faulty: () => loadShedding.lost() > 0,
    onChange: healthLog(log),
  });
  showProcessGauges(metrics, {
    lifecycle,
    fence,
    monitor,
    loadedAtMs: () => present().loadedAtMs,
    tracing,
    waiting: { event: () => events.waiting(), receipt: () => receipts.waiting() },
    unreadable: () => store.unreadable?.() ?? {},
    stream,
    loadShedding,
    budget,
  });
  return monitor;
}

/**
 * Flushes what waits for the store and stops the background work. `closePresent`: the present
 * configuration's own.
 */
export async function closeProcess(process: Process, monitor: Monitor, closePresent: () => void): Promise<void> {
  const { lifecycle, payments, backend, acp } = process;
  monitor.close();
  process.stream.close();
  process.ingress.close();
  process.loadShedding.close();
  process.passthrough?.close();
  await payments?.stopReconciling(WRITE_DOWN_MS);
  // A backend that is still silent has had the time of the drain; its calls end as undelivered.
  await Promise.all([backend.abort(), acp?.connection.abort()]);
  await lifecycle.idle(WRITE_DOWN_MS);
  closePresent();
  await payments?.releaseLeases();
  await process.mandateOpener.close();
  await process.writeQueues.close();
  await process.housekeeping.stop();
}
