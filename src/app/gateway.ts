import express, { type Express } from 'express';
import type { GatewayConfig } from '../config/document/config.ts';
import { USUAL_LIMITS } from '../config/sections/resources.ts';
import { GatewayError } from '../errors.ts';
import { operatorRoutes } from '../operator/api/routes.ts';
import { openEventStream } from '../operator/api/stream.ts';
import { consoleRoutes } from '../operator/console/routes.ts';
import { createDeliveryRecorder } from '../payments/delivery/delivery-recorder.ts';
import type { X402Rail } from '../payments/x402/create-rail.ts';
import { compileOffers } from '../payments/x402/wire/offers.ts';
import { authorize } from '../pipeline/middleware/authorize.ts';
import { challenge } from '../pipeline/middleware/challenge.ts';
import { deliver } from '../pipeline/middleware/deliver.ts';
import { errorHandler } from '../pipeline/middleware/error-handler.ts';
import { forward } from '../pipeline/middleware/forward.ts';
import { countUntilClosed, limitConcurrency, trackInFlight } from '../pipeline/middleware/limit-concurrency.ts';
import { resolve } from '../pipeline/middleware/resolve.ts';
import { timed } from '../pipeline/middleware/timed.ts';
import { validate } from '../pipeline/middleware/validate.ts';
import { createCollect } from '../pipeline/steps/collecting.ts';
import { compileCatalogue } from '../resources/catalogue.ts';
import { keepAccessRecord } from '../server/http/access-record.ts';
import { checkFraming } from '../server/http/framing.ts';
import { checkHost, checkOrigin } from '../server/http/origin.ts';
import { identify, idPrefixes } from '../server/http/request-id.ts';
import { belowPath, refuseEncodedSlash } from '../server/http/target.ts';
import { createAnswerBudget } from '../server/load-shedding/answer-budget.ts';
import type { EventLoopLag } from '../server/load-shedding/event-loop-lag.ts';
import type { LoadShedder } from '../server/load-shedding/load-shedder.ts';
import { openLoadShedder } from '../server/load-shedding/open-load-shedder.ts';
import { createLifecycle, type Lifecycle } from '../sidecar/lifecycle.ts';
import type { Store } from '../store/port/store.ts';
import { startMonitor } from '../telemetry/health/monitor.ts';
import { probes } from '../telemetry/health/routes.ts';
import { watched } from '../telemetry/health/watched.ts';
import { failureLog, healthLog, httpLog, type Log } from '../telemetry/log/log.ts';
import { watchOver } from '../telemetry/metrics/call-metrics.ts';
import { createMetrics } from '../telemetry/metrics/metrics.ts';
import { PASSED_ON, type Tracing } from '../telemetry/traces/tracing.ts';
import { startHousekeeping } from './housekeeping.ts';
import { openIngressGuards, plainExpress } from './ingress-guards.ts';
import { managementApp } from './management.ts';
import { mountAdapters } from './mount-adapters.ts';
import { openAcp } from './open-acp.ts';
import { openBackend } from './open-backend.ts';
import { openMandates } from './open-mandates.ts';
import { openBuyerTokens, openPayments } from './open-payments.ts';
import { showProcessGauges } from './process-gauges.ts';
import { mirroredHeaders, mountPublicRoutes } from './public-routes.ts';
import { openWriteQueues } from './write-queues.ts';

/** How long the last calls may take to write down how they ended, milliseconds. */
const WRITE_DOWN_MS = 2_000;

/** What a gateway is made of; the caller opened it and closes it. */
interface GatewayParts {
  readonly config: GatewayConfig;
  readonly store: Store;
  /** Undefined when nothing has a price. */
  readonly rail: X402Rail | undefined;
  readonly log: Log;
  /** Undefined: nobody collects traces. */
  readonly tracing?: Tracing;
  /** What the event loop does; this process's own unless given. */
  readonly loop?: () => EventLoopLag;
}

/** The two apps, not yet listening, and the life they share. */
export interface Gateway {
  readonly agents: Express;
  /** Stands before `agents`: what it answered does not come in. */
  readonly loadShedder: LoadShedder;
  readonly management: Express;
  readonly lifecycle: Lifecycle;
  /** Flushes what waits for the store and stops the background work. */
  close(): Promise<void>;
}

/**
 * Wires everything. The order of the middleware that a call passes is the order of the lines below.
 */
export function createGateway(parts: GatewayParts, drain: () => Promise<void>): Gateway {
  const { config, store, log, tracing = PASSED_ON } = parts;
  const catalogue = compileCatalogue(config);
  const lifecycle = createLifecycle();
  const tokens = openBuyerTokens(config, store.secrets);
  const offers = compileOffers(config, tokens);
  const metrics = createMetrics({ sold: (id) => catalogue.byId.has(id), offers, census: () => store.census() });
  const ledger = metrics.payments.ledger(store.ledger);
  const writeQueues = openWriteQueues(store, log, metrics);
  const { events, receipts } = writeQueues;
  const housekeeping = startHousekeeping(store, log, metrics);
  const ingressGuards = openIngressGuards(config, log, metrics);
  const mandates = openMandates(config, store.mandates);
  const { service: mandateService } = mandates ?? {};
  const merchant = openBackend(config, log, metrics);
  const monitor = startMonitor({
    ...watched({ ...parts, trust: mandates?.trust }),
    gate: lifecycle,
    bypassed: ingressGuards.bypassed,
    backendReachable: merchant.reachable,
    onChange: healthLog(log),
  });
  const keepAnswerMs = (config.x402?.keepAnswerSeconds ?? 0) * 1_000;
  const deliveries = createDeliveryRecorder(ledger, keepAnswerMs, {
    unwritten: (facts) => {
      metrics.dropped('delivery', 1);
      log.error(facts, 'a delivery is not written');
    },
    unmarked: (facts) => log.warn(facts, 'an answer leaves before the store has the mark that it may'),
  });
  const onFailure = failureLog(log);
  // Headers of the resource itself went with it.
  const removed = { ...USUAL_LIMITS, headers: config.backend.headers };
  const payments = openPayments(parts, {
    ledger,
    removed,
    offers,
    events,
    merchant,
    deliveries,
    tokens,
    mandateService,
    lifecycle,
    clientOf: ingressGuards.clientOf,
    log,
    metrics,
  });
  const stream = openEventStream({
    feed: store.feed,
    gate: lifecycle,
    maxStreams: config.limits.maxStreams,
    onTrouble: (cause) => log.warn({ err: cause }, 'event streams wait for the store'),
  });
  const mounts = idPrefixes(config.protocols);
  const loadShedding = openLoadShedder({
    maxInFlight: config.limits.maxInFlight,
    mounts,
    draining: () => lifecycle.draining(),
    onShed: (shed) => log.warn({ shed }, 'busy: calls were refused'),
    ...(parts.loop === undefined ? {} : { loop: parts.loop }),
  });
  const budget = createAnswerBudget(config.limits.maxBufferedBytes);
  showProcessGauges(metrics, {
    lifecycle,
    monitor,
    degraded: { bypass: ingressGuards.bypassed, backend: () => !merchant.reachable() },
    tracing,
    waiting: { event: () => events.waiting(), receipt: () => receipts.waiting() },
    unreadable: () => store.unreadable?.() ?? {},
    stream,
    loadShedding,
    budget,
  });

  const watch = watchOver(metrics.calls, tracing);
  const shared = { store, writeQueues, ingressGuards, lifecycle, loadShedding, watch, onFailure, log, metrics };
  const checkouts = openAcp(config, shared);
  const agents = plainExpress(express());
  agents.use(identify(mounts));
  agents.use(keepAccessRecord(watch));
  agents.use(httpLog(log, tracing, checkouts?.shownPath));
  agents.use(countUntilClosed(lifecycle));
  agents.use(checkFraming(checkouts));
  agents.use(probes(monitor));
  agents.use(checkHost(config.server.allowedHosts));
  // Before the check of the Origin: browsers name it when they load modules, and an operator comes
  // in by any name of the pod.
  agents.use(belowPath(['/console'], consoleRoutes(config.server.adminTokens)));
  agents.use(checkOrigin(config.server.allowedOrigins, config.merchant.publicBaseUrl, mirroredHeaders(catalogue)));
  agents.use(refuseEncodedSlash(checkouts?.mountPath));
  mountPublicRoutes(agents, config, catalogue, () => monitor.adapterHealth());
  const sources = { ...store, stream: stream.route, written: writeQueues.flush };
  const operators = operatorRoutes(config.server.adminTokens, sources, ingressGuards.guesses);
  agents.use(belowPath(['/api/receipts', '/api/events'], operators));

  const layer = timed(watch.layer);
  const collect = payments && createCollect(payments.findEarlier, catalogue, events, removed);
  const purchase = [
    layer('admit', limitConcurrency(lifecycle, loadShedding.slots)),
    layer('resolve', resolve(catalogue, events, collect)),
    layer('validate', validate(collect)),
    layer('challenge', challenge(offers, mandateService)),
    ...(payments === undefined ? [] : [layer('verify', payments.middleware.verify)]),
    ...(mandateService === undefined
      ? []
      : [layer('authorize', trackInFlight(lifecycle, authorize(offers, mandateService, ledger)))]),
    ...(payments === undefined ? [] : [layer('settle', payments.middleware.settle)]),
    layer('forward', trackInFlight(lifecycle, forward(merchant.exchange, deliveries))),
    layer('conclude', ingressGuards.unlessPaid(trackInFlight(lifecycle, deliver(deliveries, receipts)))),
  ];
  mountAdapters(agents, { config, catalogue, store, budget, ingressGuards, checkouts }, purchase);

  agents.use(function noRoute() {
    throw new GatewayError('NOT_FOUND');
  });
  agents.use(errorHandler(onFailure));

  return {
    agents,
    loadShedder: loadShedding.loadShedder,
    management: managementApp(monitor, metrics, drain, onFailure),
    lifecycle,
    async close() {
      monitor.close();
      stream.close();
      ingressGuards.close();
      loadShedding.close();
      await payments?.stopReconciling(WRITE_DOWN_MS);
      // Who is still silent has had the time of the drain; what it leaves behind is written down as
      // undelivered.
      await Promise.all([merchant.abort(), checkouts?.abort()]);
      await lifecycle.idle(WRITE_DOWN_MS);
      tokens?.close();
      await payments?.releaseLeases();
      await mandates?.close();
      await writeQueues.close();
      await housekeeping.stop();
    },
  };
}
