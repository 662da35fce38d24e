/**
 * The wiring of one gateway: `createGateway` opens its services and puts them behind two Express
 * apps. `agentsApp` and `purchase` show what a request passes, in its order.
 */

import type { Express, RequestHandler } from 'express';
import type { GatewayConfig } from '../config/document/config.ts';
import { operatorRoutes } from '../operator/api/routes.ts';
import { openEventStream } from '../operator/api/stream.ts';
import { consoleRoutes } from '../operator/console/routes.ts';
import { takeRoute } from '../passthrough/take-route.ts';
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
import { compileCatalogue } from '../resources/catalogue.ts';
import { keepAccessRecord } from '../server/http/access-record.ts';
import { checkFraming } from '../server/http/framing.ts';
import { checkHost, checkOrigin } from '../server/http/origin.ts';
import { identify, idPrefixes } from '../server/http/request-id.ts';
import { belowPath, refuseEncodedSlash } from '../server/http/target.ts';
import type { RelayParts } from '../server/listener/listen.ts';
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
import { openIngressGuards } from './ingress-guards.ts';
import { managementApp } from './management.ts';
import { mountAdapters, mountSaleInPlace, preflightInPlace } from './mount-adapters.ts';
import { openBackend } from './open-backend.ts';
import { openMandates } from './open-mandates.ts';
import { openBuyerTokens, openDeliveryRecorder, openPayments } from './open-payments.ts';
import { openRoutes, shownPath } from './open-routes.ts';
import { noRoute, plainExpress } from './plain-express.ts';
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
  /** Undefined: no collector takes traces. */
  readonly tracing?: Tracing;
  /** What the event loop does; this process's own unless given. */
  readonly loop?: () => EventLoopLag;
}

/** The two apps, not yet listening, and the lifecycle that they share. */
export interface Gateway {
  readonly agents: Express;
  /** Stands before `agents`, which does not see what it answered. */
  readonly loadShedder: LoadShedder;
  /** What the listener of `agents` leaves to the passthrough; undefined: nothing passes. */
  readonly relay: RelayParts | undefined;
  readonly management: Express;
  readonly lifecycle: Lifecycle;
  /** Flushes what waits for the store and stops the background work. */
  close(): Promise<void>;
}

/** Wires a gateway. `drain`: what the pod's hook starts. */
export async function createGateway(parts: GatewayParts, drain: () => Promise<void>): Promise<Gateway> {
  const services = await openServices(parts);
  const { loadShedding, lifecycle, monitor, metrics, onFailure } = services;
  return {
    agents: await agentsApp(parts, services),
    loadShedder: loadShedding.loadShedder,
    relay: services.passthrough?.relay,
    management: managementApp(monitor, metrics, drain, onFailure),
    lifecycle,
    close: () => closeServices(services),
  };
}

/** The app for agents, operators and the public: a request passes it line by line. */
async function agentsApp(
  { config, store, log, tracing = PASSED_ON }: GatewayParts,
  services: Services,
): Promise<Express> {
  const { catalogue, lifecycle, monitor, mounts, watch, ingressGuards } = services;
  const { routeOf, passthrough, offers, checkouts, writeQueues, stream, budget, onFailure } = services;
  const { server, merchant } = config;
  const app = plainExpress();
  app.use(identify(mounts));
  app.use(keepAccessRecord(watch));
  app.use(httpLog(log, tracing, shownPath(config, checkouts)));
  app.use(countUntilClosed(lifecycle));
  if (routeOf !== undefined) app.use(takeRoute(routeOf, passthrough?.handler ?? noRoute));
  app.use(checkFraming(checkouts));
  app.use(probes(monitor));
  app.use(checkHost(server.allowedHosts));
  // Before the check of the Origin: browsers send one when they load modules, and an operator uses
  // any name of the pod.
  app.use(belowPath(['/console'], consoleRoutes(server.adminTokens)));
  const pages = [mirroredHeaders(catalogue), preflightInPlace(config.backend)] as const;
  app.use(checkOrigin(server.allowedOrigins, merchant.publicBaseUrl, ...pages));
  const adapters = { config, catalogue, offers, store, budget, ingressGuards, checkouts };
  const steps = purchase(services);
  if (routeOf !== undefined) mountSaleInPlace(app, adapters, steps);
  app.use(refuseEncodedSlash(checkouts?.mountPath));
  mountPublicRoutes(app, config, catalogue, () => monitor.adapterHealth());
  const sources = { ...store, stream: stream.route, written: writeQueues.flush };
  const operators = operatorRoutes(server.adminTokens, sources, ingressGuards.guesses);
  app.use(belowPath(['/api/receipts', '/api/events'], operators));
  await mountAdapters(app, adapters, steps);
  app.use(noRoute);
  app.use(errorHandler(onFailure));
  return app;
}

/** What every call passes behind its adapter, in this order, each under the name it is timed as. */
function purchase(services: Services): readonly RequestHandler[] {
  const { catalogue, events, receipts, offers, payments, mandateService, ledger, backend, deliveries } = services;
  const { lifecycle, loadShedding, ingressGuards } = services;
  const step = timed(services.watch.layer);
  return [
    step('admit', limitConcurrency(lifecycle, loadShedding.slots)),
    step('resolve', resolve(catalogue, events, payments?.collect)),
    step('validate', validate(payments?.collect)),
    step('challenge', challenge(offers, mandateService)),
    ...(payments === undefined ? [] : [step('verify', payments.middleware.verify)]),
    ...(mandateService === undefined
      ? []
      : [step('authorize', trackInFlight(lifecycle, authorize(offers, mandateService, ledger)))]),
    ...(payments === undefined ? [] : [step('settle', payments.middleware.settle)]),
    step('forward', trackInFlight(lifecycle, forward(backend.exchange, deliveries))),
    step('conclude', ingressGuards.unlessPaid(trackInFlight(lifecycle, deliver(deliveries, receipts)))),
  ];
}

/** Everything that the middleware works with, open. */
type Services = Awaited<ReturnType<typeof openServices>>;

async function openServices(parts: GatewayParts) {
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
  const { clientOf, exposed } = ingressGuards;
  const mandates = await openMandates(config, store.mandates);
  const mandateService = mandates?.service;
  const backend = openBackend(config, log, metrics);
  const monitor = startMonitor({
    ...watched({ ...parts, trust: mandates?.trust }),
    gate: lifecycle,
    bypassed: exposed,
    backendReachable: backend.reachable,
    onChange: healthLog(log),
  });
  const deliveries = openDeliveryRecorder(config, ledger, log, metrics);
  const shared = { lifecycle, ledger, events, deliveries, backend, log, metrics };
  const payments = openPayments({ ...shared, ...parts, catalogue, tokens, offers, mandateService, clientOf });
  const stream = openEventStream({
    feed: store.feed,
    gate: lifecycle,
    maxStreams: config.limits.maxStreams,
    onTrouble: (cause) => log.warn({ err: cause }, 'event streams wait for the store'),
  });
  const mounts = idPrefixes(config.protocols);
  const routeOf = openRoutes(config, catalogue);
  const loadShedding = openLoadShedder({
    maxInFlight: config.limits.maxInFlight,
    mounts,
    draining: () => lifecycle.draining(),
    routeOf,
    onShed: (shed) => log.warn({ shed }, 'busy: calls were refused'),
    ...(parts.loop === undefined ? {} : { loop: parts.loop }),
  });
  const budget = createAnswerBudget(config.limits.maxBufferedBytes);
  showProcessGauges(metrics, {
    lifecycle,
    monitor,
    degraded: { bypass: exposed, backend: () => !backend.reachable() },
    tracing,
    waiting: { event: () => events.waiting(), receipt: () => receipts.waiting() },
    unreadable: () => store.unreadable?.() ?? {},
    stream,
    loadShedding,
    budget,
  });
  const watch = watchOver(metrics.calls, tracing);
  const onFailure = failureLog(log);
  const acpParts = { ...shared, store, receipts, ingressGuards, loadShedding, watch, onFailure };
  // Checkouts and the passthrough are loaded where the configuration has them alone.
  const checkouts = config.protocols.acp.enabled
    ? (await import('./open-acp.ts')).openAcp(config, acpParts)
    : undefined;
  const settings = config.backend.passthrough;
  const passthrough =
    routeOf === undefined || settings === undefined
      ? undefined
      : (await import('./open-passthrough.ts')).openPassthrough({
          config,
          settings,
          routeOf,
          lifecycle,
          log,
          metrics,
          onFailure,
        });
  return {
    ...{ ...shared, receipts, catalogue, mounts, offers, tokens, payments, mandates, mandateService, checkouts },
    ...{
      routeOf,
      passthrough,
      ingressGuards,
      loadShedding,
      budget,
      stream,
      monitor,
      watch,
      onFailure,
      writeQueues,
      housekeeping,
    },
  };
}

async function closeServices(services: Services): Promise<void> {
  const { lifecycle, payments, backend, checkouts } = services;
  services.monitor.close();
  services.stream.close();
  services.ingressGuards.close();
  services.loadShedding.close();
  services.passthrough?.close();
  await payments?.stopReconciling(WRITE_DOWN_MS);
  // A backend that is still silent has had the time of the drain; its calls end as undelivered.
  await Promise.all([backend.abort(), checkouts?.abort()]);
  await lifecycle.idle(WRITE_DOWN_MS);
  services.tokens?.close();
  await payments?.releaseLeases();
  await services.mandates?.close();
  await services.writeQueues.close();
  await services.housekeeping.stop();
}
