/**
 * The wiring of one gateway: `createGateway` opens its services and puts them behind two Express
 * apps. `agentsRoutes` and `purchase` show what a request passes, in its order. A generation holds
 * all that a configuration decides; a reload replaces it as a whole.
 */

import type { Express, RequestHandler, Router } from 'express';
import { PURCHASE_PATH, purchaseState } from '../adapters/http/purchase-state.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import { operatorRoutes } from '../operator/api/routes.ts';
import { consoleRoutes } from '../operator/console/routes.ts';
import { takeRoute } from '../passthrough/route.ts';
import { unpaidWork } from '../payments/settlement/places.ts';
import { compileOffers, entriesOf } from '../payments/x402/wire/offers.ts';
import { entriesIn } from '../payments/x402/wire/settings.ts';
import { countUntilClosed, holdWhileFenced, limitConcurrency, trackInFlight } from '../pipeline/middleware/admit.ts';
import { authorize } from '../pipeline/middleware/authorize.ts';
import { challenge, createSelling } from '../pipeline/middleware/challenge.ts';
import { deliver } from '../pipeline/middleware/deliver.ts';
import { errorHandler } from '../pipeline/middleware/error-handler.ts';
import { forward } from '../pipeline/middleware/forward.ts';
import { resolve, validate } from '../pipeline/middleware/prepare.ts';
import { settle } from '../pipeline/middleware/settle.ts';
import { inOrder, timed } from '../pipeline/middleware/timed.ts';
import { verify } from '../pipeline/middleware/verify.ts';
import { type Catalogue, compileCatalogue } from '../resources/catalogue.ts';
import { identify, keepAccessRecord } from '../server/http/access-record.ts';
import { checkHost, checkOrigin } from '../server/http/origin.ts';
import { allowOnly, belowPath, checkFraming, refuseEncodedSlash } from '../server/http/request.ts';
import type { LoadShedder } from '../server/limits/load-shedder.ts';
import type { RelayParts } from '../server/listener/listen.ts';
import { appProbes } from '../sidecar/app-probes.ts';
import type { Fence, Lifecycle } from '../sidecar/lifecycle.ts';
import type { PodHooks } from '../sidecar/pod-hooks.ts';
import { type Monitor, probes } from '../telemetry/health/monitor.ts';
import { httpLog } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { headRoom } from './head-room.ts';
import type { IngressGuards } from './ingress-guards.ts';
import { managementApp } from './management.ts';
import { startMonitoring } from './monitoring.ts';
import { mirroredHeaders, mountAdapters, mountPublicRoutes, preflightInPlace, saleInPlace } from './mount-routes.ts';
import type { AcpService } from './open-acp.ts';
import type { Exchanges } from './open-backend.ts';
import { type OpenBuyerTokens, type OpenedPayments, openBuyerTokens } from './open-payments.ts';
import { openRoutes, otherOperations, shownPath, soldTargets } from './open-routes.ts';
import {
  closeServices,
  firstInUse,
  type GatewayParts,
  type InUse,
  openServices,
  type Services,
} from './open-services.ts';
import { openSigning } from './open-signing.ts';
import { noRoute, plainExpress, plainRouter } from './plain-express.ts';

/** The two apps, not yet listening, and the lifecycle that they share. */
export interface Gateway {
  readonly agents: Express;
  /** Stands before `agents`, and answers the requests that it sheds. */
  readonly loadShedder: LoadShedder;
  /** The passthrough for the listener of `agents`; undefined: nothing passes. */
  readonly relay: RelayParts | undefined;
  readonly management: Express;
  readonly lifecycle: Lifecycle;
  readonly fence: Fence;
  /** Requests in flight to the merchant. */
  readonly exchanges: Exchanges;
  /** Takes the metrics of other parts of the process. */
  readonly metrics: Pick<Metrics, 'counter' | 'gauge' | 'text'>;
  /** The present configuration. */
  config(): GatewayConfig;
  /**
   * Puts a configuration in the place of the present one, at once and as a whole; calls in flight
   * end with the one that they began with. `config` may differ only where that needs no restart.
   * @throws what making a generation throws; the present configuration stays then
   */
  reload(config: GatewayConfig): void;
  /** Flushes what waits for the store and stops the background work. */
  close(): Promise<void>;
}

/** Wires a gateway. `hooks`: the work that the pod's hooks start. */
export async function createGateway(parts: GatewayParts, hooks: PodHooks): Promise<Gateway> {
  const inUse = firstInUse(parts.config);
  const services = await openServices(parts, inUse);
  let generation = openGeneration(parts.config, services);
  putIntoUse(generation, inUse, parts);
  const monitor = startMonitoring(parts, services, inUse);
  let routes = agentsRoutes(generation, services, monitor);
  const { loadShedding, lifecycle, metrics, onFailure } = services;
  const merchantProbes = appProbes(parts.appProbes ?? {}, (target) => generation.isSold(target));
  const reload = (config: GatewayConfig): void => {
    const before = generation;
    const next = openGeneration(config, services, before);
    const nextRoutes = closingOnFailure(next, before, () => agentsRoutes(next, services, monitor));
    // Nothing from here on can fail: one configuration is in use, or the other.
    parts.store.renew?.(config.storage);
    services.payments?.use(config, before.offers, next.offers);
    putIntoUse(next, inUse, parts);
    generation = next;
    routes = nextRoutes;
    before.close(next);
    // A removed token closes all streams; readers with another token resume.
    if (before.config.server.adminTokens.some((token) => !config.server.adminTokens.includes(token)))
      services.stream.close();
  };
  return {
    // A request keeps the routes that it entered.
    agents: plainExpress().use(function presentRoutes(req, res, next) {
      routes(req, res, next);
    }),
    loadShedder: loadShedding.loadShedder,
    relay: services.passthrough?.relay,
    management: managementApp({ monitor, metrics, hooks, merchantProbes, onFailure }),
    lifecycle,
    fence: services.fence,
    exchanges: services.exchanges,
    metrics,
    config: () => inUse.config,
    reload,
    close: () => closeServices(services, monitor, () => generation.close()),
  };
}

/** All that one configuration decides; a call keeps the generation that it began with. */
interface Generation extends Readonly<InUse> {
  readonly catalogue: Catalogue;
  readonly tokens: OpenBuyerTokens | undefined;
  readonly ingressGuards: IngressGuards;
  readonly payments: ReturnType<OpenedPayments['sale']>;
  readonly checkouts: AcpService | undefined;
  /** Whether a built path may be that of an operation that is sold on other terms. */
  readonly leadsElsewhere: ReturnType<typeof otherOperations>;
  /** Whether a path of the merchant may be one that is paid for. */
  readonly isSold: (target: string) => boolean;
  /** Ends its background work, except the work that `next` shares. */
  close(next?: Pick<Generation, 'tokens' | 'mandates'>): void;
}

/** `before`: the generation in use. @throws Error */
function openGeneration(config: GatewayConfig, services: Services, before?: Generation): Generation {
  const catalogue = compileCatalogue(config);
  const routeOf = openRoutes(config, catalogue);
  const ingressGuards = services.ingress.guards(config);
  const checkouts = services.acp?.service(config, ingressGuards);
  const tokens = openBuyerTokens(config, services.store.secrets, before?.tokens);
  const signing = openSigning(config, services.log);
  const offers = compileOffers({ ...config, headRoom: headRoom(config) }, tokens, {
    bazaar: catalogue.bazaar,
    signer: signing?.offers,
    ...(services.payments === undefined ? {} : { away: services.payments.away }),
  });
  const mandates = services.mandateOpener.open(config, before?.mandates);
  const { clientOf } = ingressGuards;
  const payments = services.payments?.sale({
    ...{ config, tokens, catalogue, offers, clientOf, contextOf: signing?.contextOf },
  });
  return {
    ...{ config, catalogue, routeOf, ingressGuards, checkouts, tokens, signing, offers, mandates, payments },
    loadedAtMs: Date.now(),
    leadsElsewhere: otherOperations(config, catalogue),
    isSold: soldTargets(config),
    close(next) {
      if (next?.tokens?.keys !== tokens?.keys) tokens?.keys.close();
      mandates?.close(next?.mandates);
    },
  };
}

/** Makes a generation the one in use for the services and the rail, which outlive it. */
function putIntoUse(generation: Generation, inUse: InUse, { rail }: Pick<GatewayParts, 'rail'>): void {
  const { config, loadedAtMs, catalogue, offers, mandates, routeOf, signing } = generation;
  Object.assign(inUse, { config, loadedAtMs, catalogue, offers, mandates, routeOf, signing } satisfies InUse);
  rail?.renew(entriesIn(config), entriesOf(offers.values()));
}

/** Runs `make` for `next`, which is not in use yet, and closes `next` if that fails. */
function closingOnFailure<Made>(next: Generation, present: Generation, make: () => Made): Made {
  try {
    return make();
  } catch (error) {
    next.close(present);
    throw error;
  }
}

/** Makes the routes of agents, operators and the public. A request passes them line by line. */
function agentsRoutes(generation: Generation, services: Services, monitor: Monitor): Router {
  const { config, catalogue, routeOf, offers, checkouts, ingressGuards } = generation;
  const { store, log, tracing, lifecycle, mounts, watch, passthrough, writeQueues, stream, budget } = services;
  const { server, merchant } = config;
  const { loadedAdapters } = services;
  const adapters = { config, catalogue, offers, store, budget, ingressGuards, checkouts, loadedAdapters };
  const steps = purchase(generation, services);
  const app = plainRouter();
  // The console stands before the check of the Origin: browsers send one when they load modules,
  // and an operator uses any name of the pod.
  const site = config.backend.passthrough === undefined ? undefined : merchant.publicBaseUrl;
  const operatorConsole = belowPath(['/console'], consoleRoutes(server.adminTokens, site));
  const pages = [mirroredHeaders(catalogue), preflightInPlace(config.backend)] as const;
  // One handler: each handler of a router costs every request 0.5 KB and a microsecond.
  app.use(
    inOrder([
      ...[identify(mounts), keepAccessRecord(watch), httpLog(log, tracing, shownPath(config, checkouts))],
      countUntilClosed(lifecycle),
      ...(routeOf === undefined ? [] : [takeRoute(routeOf, passthrough?.handler ?? noRoute)]),
      ...[checkFraming(checkouts), belowPath(['/health', '/ready'], probes(monitor)), checkHost(server.allowedHosts)],
      operatorConsole,
      checkOrigin(server.allowedOrigins, merchant.publicBaseUrl, ...pages),
      ...(routeOf === undefined ? [] : [saleInPlace(adapters, steps)]),
      refuseEncodedSlash(checkouts?.mountPath),
    ]),
  );
  mountAdapters(app, adapters, steps);
  mountPublicRoutes(app, config, catalogue, () => monitor.adapterHealth());
  const unpaid = async (limit: number) => {
    const [refused, failed = []] = await Promise.all([
      store.ledger.unpaid(limit),
      services.payments?.failedWork(limit),
    ]);
    const rows = [...refused.map(unpaidWork), ...failed];
    return rows.sort((a, b) => b.at.localeCompare(a.at)).slice(0, limit);
  };
  const sources = { ...store, unpaid, stream: stream.route, written: writeQueues.flush };
  const operators = operatorRoutes(server.adminTokens, sources, ingressGuards.guesses);
  app.use(belowPath(['/api/receipts', '/api/events'], operators));
  mountPurchaseState(app, generation, store);
  app.use(noRoute, errorHandler(services.onFailure));
  return app;
}

/** Mounts the states of purchases where the gateway sells and signs for buyers. */
function mountPurchaseState(
  app: ReturnType<typeof plainRouter>,
  { signing, payments, ingressGuards }: Generation,
  { receipts }: Services['store'],
): void {
  if (signing === undefined || payments === undefined) return;
  const answer = purchaseState({ findOwn: payments.findOwn, receipts, signer: signing.purchases });
  app.get(PURCHASE_PATH, [...ingressGuards.entrance, answer]);
  app.all(PURCHASE_PATH, allowOnly('GET', 'HEAD'));
}

/** The middleware of every call behind its adapter, in order, each with the name of its timer. */
function purchase(generation: Generation, services: Services): readonly RequestHandler[] {
  const { catalogue, offers, payments, ingressGuards } = generation;
  const { events, receipts, backend, deliveries, lifecycle, loadShedding } = services;
  const mandateService = generation.mandates?.service;
  const signer = generation.signing?.purchases;
  const step = timed(services.watch.layer);
  const tracked = (middleware: RequestHandler): RequestHandler => trackInFlight(lifecycle, middleware);
  // When a step refuses a call whose payment is known, the call goes on behind the steps.
  const knownFirst = (...steps: readonly RequestHandler[]): readonly RequestHandler[] =>
    payments === undefined ? steps : [inOrder(steps, payments.collector.refused)];
  const { selling = createSelling(offers) } = payments ?? {};
  return [
    step('admit', limitConcurrency(lifecycle, loadShedding.slots)),
    ...knownFirst(
      step('resolve', resolve(catalogue, events)),
      step('validate', validate(generation.leadsElsewhere)),
      step('challenge', challenge(selling, mandateService)),
    ),
    holdWhileFenced(services.fence),
    ...(payments === undefined
      ? []
      : knownFirst(step('verify', tracked(verify(selling, payments.verifier, payments.gate, mandateService))))),
    ...(mandateService === undefined ? [] : knownFirst(step('authorize', tracked(authorize(mandateService))))),
    ...(payments === undefined
      ? []
      : [
          step(
            'settle',
            tracked(settle(selling, payments.settler, payments.gate, payments.collector, mandateService, signer)),
          ),
        ]),
    step('forward', tracked(forward(backend.exchange, deliveries, generation.signing?.contextOf))),
    step('conclude', ingressGuards.unlessPaid(tracked(deliver(deliveries, receipts, signer)))),
  ];
}
