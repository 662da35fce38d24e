import express, { type Express } from 'express';
import { openBacklog } from './backlog.ts';
import { compileCatalogue } from './catalogue/catalogue.ts';
import { openCheckoutDesk } from './checkout-desk.ts';
import type { GatewayConfig } from './config/config.ts';
import { USUAL_LIMITS } from './config/resources.ts';
import { consoleRoutes } from './console/routes.ts';
import { openEdges } from './edges.ts';
import { GatewayError } from './errors.ts';
import { startHousekeeping } from './housekeeping.ts';
import { keepAccount } from './http/account.ts';
import { below } from './http/below.ts';
import { checkFraming } from './http/framing.ts';
import { refuseEncodedSlash } from './http/methods.ts';
import { checkHost, checkOrigin } from './http/origin.ts';
import { identify, idPrefixes } from './http/request-id.ts';
import { admit } from './layers/admit.ts';
import { authorize } from './layers/authorize.ts';
import { challenge } from './layers/challenge.ts';
import { createCollect } from './layers/collect.ts';
import { conclude } from './layers/conclude.ts';
import { counted, countUntilClosed } from './layers/counted.ts';
import { forward } from './layers/forward.ts';
import { measured } from './layers/measured.ts';
import { present } from './layers/present.ts';
import { resolve } from './layers/resolve.ts';
import { validate } from './layers/validate.ts';
import { managementApp } from './management.ts';
import { openMandateDesk } from './mandate-desk.ts';
import { openBackend } from './open-backend.ts';
import { operatorRoutes } from './operator/routes.ts';
import { openEventStream } from './operator/stream.ts';
import { createAnswerBudget } from './overload/answer-budget.ts';
import type { Door } from './overload/door.ts';
import { openDoorway } from './overload/doorway.ts';
import type { LoopReading } from './overload/loop-reading.ts';
import { createDeliveryDesk } from './payments/delivery.ts';
import { compileOffers } from './payments/offers.ts';
import type { X402Rail } from './payments/x402/create-rail.ts';
import { plainExpress } from './plain-express.ts';
import { startMonitor } from './probes/monitor.ts';
import { probes } from './probes/routes.ts';
import { watched } from './probes/watched.ts';
import { mirroredHeaders, publish } from './publication.ts';
import { createLifecycle, type Lifecycle } from './sidecar/lifecycle.ts';
import type { Store } from './store/store.ts';
import { openFronts } from './storefront.ts';
import { failureLog, healthLog, httpLog, type Log } from './telemetry/log.ts';
import { createMetrics } from './telemetry/metrics.ts';
import { PASSED_ON, type Tracing } from './telemetry/tracing.ts';
import { watchOver } from './telemetry/watch.ts';
import { openBuyerTokens, openTillFor } from './till.ts';
import { showVitalSigns } from './vital-signs.ts';

/** How long the last calls may take to write down how they ended, milliseconds. */
const WRITE_DOWN_MS = 2_000;

/** What a gateway is made of; the caller opened it and closes it. */
export interface GatewayParts {
  readonly config: GatewayConfig;
  readonly store: Store;
  /** Undefined when nothing has a price. */
  readonly rail: X402Rail | undefined;
  readonly log: Log;
  /** Undefined: nobody collects traces. */
  readonly tracing?: Tracing;
  /** What the event loop does; this process's own unless given. */
  readonly loop?: () => LoopReading;
}

/** The two apps, not yet listening, and the life they share. */
export interface Gateway {
  readonly agents: Express;
  /** Stands before `agents`: what it answered does not come in. */
  readonly door: Door;
  readonly management: Express;
  readonly lifecycle: Lifecycle;
  /** Flushes what waits for the store and stops the background work. */
  close(): Promise<void>;
}

/** Wires everything. The order of the layers that a call passes is the order of the lines below. */
export function createGateway(parts: GatewayParts, drain: () => Promise<void>): Gateway {
  const { config, store, log, tracing = PASSED_ON } = parts;
  const catalogue = compileCatalogue(config);
  const lifecycle = createLifecycle();
  const tokens = openBuyerTokens(config, store.secrets);
  const offers = compileOffers(config, tokens);
  const metrics = createMetrics({ sold: (id) => catalogue.byId.has(id), offers, census: () => store.census() });
  const ledger = metrics.payments.ledger(store.ledger);
  const backlog = openBacklog(store, log, metrics);
  const { events, receipts } = backlog;
  const housekeeping = startHousekeeping(store, log, metrics);
  const edges = openEdges(config, log, metrics);
  const mandates = openMandateDesk(config, store.mandates);
  const { desk: mandateDesk } = mandates ?? {};
  const merchant = openBackend(config, log, metrics);
  const monitor = startMonitor({
    ...watched({ ...parts, trust: mandates?.trust }),
    gate: lifecycle,
    bypassed: edges.bypassed,
    backendReachable: merchant.reachable,
    onChange: healthLog(log),
  });
  const keepAnswerMs = (config.x402?.keepAnswerSeconds ?? 0) * 1_000;
  const desk = createDeliveryDesk(ledger, keepAnswerMs, {
    unwritten: (facts) => {
      metrics.dropped('delivery', 1);
      log.error(facts, 'a delivery is not written');
    },
    unmarked: (facts) => log.warn(facts, 'an answer leaves before the store has the mark that it may'),
  });
  const onFailure = failureLog(log);
  // Headers of the resource itself went with it.
  const removed = { ...USUAL_LIMITS, headers: config.backend.headers };
  const till = openTillFor(parts, {
    ledger,
    removed,
    offers,
    events,
    merchant,
    desk,
    tokens,
    mandateDesk,
    lifecycle,
    clientOf: edges.clientOf,
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
  const doorway = openDoorway({
    maxInFlight: config.limits.maxInFlight,
    mounts,
    draining: () => lifecycle.draining(),
    onShed: (shed) => log.warn({ shed }, 'busy: calls were refused'),
    ...(parts.loop === undefined ? {} : { loop: parts.loop }),
  });
  const budget = createAnswerBudget(config.limits.maxBufferedBytes);
  showVitalSigns(metrics, {
    lifecycle,
    monitor,
    degraded: { bypass: edges.bypassed, backend: () => !merchant.reachable() },
    tracing,
    waiting: { event: () => events.waiting(), receipt: () => receipts.waiting() },
    unreadable: () => store.unreadable?.() ?? {},
    stream,
    doorway,
    budget,
  });

  const watch = watchOver(metrics.calls, tracing);
  const shared = { store, backlog, edges, lifecycle, doorway, watch, onFailure, log, metrics };
  const checkouts = openCheckoutDesk(config, shared);
  const agents = plainExpress(express());
  agents.use(identify(mounts));
  agents.use(keepAccount(watch));
  agents.use(httpLog(log, tracing, checkouts?.shownPath));
  agents.use(countUntilClosed(lifecycle));
  agents.use(checkFraming(checkouts));
  agents.use(probes(monitor));
  agents.use(checkHost(config.server.allowedHosts));
  // Before the check of the Origin: browsers name it when they load modules, and an operator comes in by any name of the pod.
  agents.use(below(['/console'], consoleRoutes(config.server.adminTokens)));
  agents.use(checkOrigin(config.server.allowedOrigins, config.merchant.publicBaseUrl, mirroredHeaders(catalogue)));
  agents.use(refuseEncodedSlash(checkouts?.mountPath));
  publish(agents, config, catalogue, () => monitor.adapterHealth());
  const sources = { ...store, stream: stream.route, written: backlog.flush };
  const operators = operatorRoutes(config.server.adminTokens, sources, edges.guesses);
  agents.use(below(['/api/receipts', '/api/events'], operators));

  const layer = measured(watch.layer);
  const collect = till && createCollect(till.findEarlier, catalogue, events, removed);
  const purchase = [
    layer('admit', admit(lifecycle, doorway.places)),
    layer('resolve', resolve(catalogue, events, collect)),
    layer('validate', validate(collect)),
    layer('challenge', challenge(offers, mandateDesk)),
    ...(till === undefined ? [] : [layer('verify', till.layers.verify)]),
    ...(mandateDesk === undefined
      ? []
      : [layer('authorize', counted(lifecycle, authorize(offers, mandateDesk, ledger)))]),
    ...(till === undefined ? [] : [layer('settle', till.layers.settle)]),
    layer('forward', counted(lifecycle, forward(merchant.exchange, desk))),
    layer('conclude', edges.unlessPaid(counted(lifecycle, conclude(desk, receipts)))),
  ];
  openFronts(agents, { config, catalogue, store, budget, edges, checkouts }, purchase);

  agents.use(function noRoute() {
    throw new GatewayError('NOT_FOUND');
  });
  agents.use(present(onFailure));

  return {
    agents,
    door: doorway.door,
    management: managementApp(monitor, metrics, drain, onFailure),
    lifecycle,
    async close() {
      monitor.close();
      stream.close();
      edges.close();
      doorway.close();
      await till?.stopReconciling(WRITE_DOWN_MS);
      // Who is still silent has had the time of the drain; what it leaves behind is written down as undelivered.
      await Promise.all([merchant.abort(), checkouts?.abort()]);
      await lifecycle.idle(WRITE_DOWN_MS);
      tokens?.close();
      await till?.releaseLeases();
      await mandates?.close();
      await backlog.close();
      await housekeeping.stop();
    },
  };
}
