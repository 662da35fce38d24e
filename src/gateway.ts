import express, { type Express, type RequestHandler } from 'express';
import { type Catalogue, compileCatalogue } from './catalogue/catalogue.ts';
import type { AdapterHealths } from './catalogue/discovery.ts';
import type { GatewayConfig } from './config/config.ts';
import { GatewayError } from './errors.ts';
import type { EventDraft } from './events/event.ts';
import { httpFront } from './fronts/http.ts';
import { allowOnly, refuseEncodedSlash } from './http/methods.ts';
import { checkHost, checkOrigin } from './http/origin.ts';
import { identify } from './http/request-id.ts';
import { staticDocument } from './http/respond.ts';
import { admit } from './layers/admit.ts';
import { challenge } from './layers/challenge.ts';
import { conclude } from './layers/conclude.ts';
import { counted, countUntilClosed } from './layers/counted.ts';
import { forward } from './layers/forward.ts';
import { present } from './layers/present.ts';
import { resolve } from './layers/resolve.ts';
import { settle } from './layers/settle.ts';
import { validate } from './layers/validate.ts';
import { verify } from './layers/verify.ts';
import { managementApp } from './management.ts';
import { createExchange } from './merchant/exchange.ts';
import { operatorRoutes } from './operator/routes.ts';
import { createCashier } from './payments/cashier.ts';
import { createDeliveryDesk } from './payments/delivery.ts';
import { compileOffers, type Offers } from './payments/offers.ts';
import { createProofVerifier } from './payments/verifier.ts';
import type { X402Rail } from './payments/x402/create-rail.ts';
import { plainExpress } from './plain-express.ts';
import { startMonitor } from './probes/monitor.ts';
import { probes } from './probes/routes.ts';
import { watched } from './probes/watched.ts';
import type { Receipt } from './receipts/receipt.ts';
import { createLifecycle, type Lifecycle } from './sidecar/lifecycle.ts';
import type { Store } from './store/store.ts';
import { createWriteBehind } from './store/write-behind.ts';
import { failureLog, healthLog, httpLog, type Log } from './telemetry/log.ts';

/** How long the last calls may take to write down how they ended, milliseconds. */
const WRITE_DOWN_MS = 2_000;

/** What a gateway is made of; the caller opened it and closes it. */
export interface GatewayParts {
  readonly config: GatewayConfig;
  readonly store: Store;
  /** Undefined when nothing has a price. */
  readonly rail: X402Rail | undefined;
  readonly log: Log;
}

/** The two apps, not yet listening, and the life they share. */
export interface Gateway {
  readonly agents: Express;
  readonly management: Express;
  readonly lifecycle: Lifecycle;
  /** Flushes what waits for the store and stops the background work. */
  close(): Promise<void>;
}

/** Wires everything. The order of the layers that a call passes is the order of the lines below. */
export function createGateway(parts: GatewayParts, drain: () => Promise<void>): Gateway {
  const { config, store, log } = parts;
  const catalogue = compileCatalogue(config);
  const lifecycle = createLifecycle();
  const events = createWriteBehind<EventDraft>((batch, id) => store.feed.append(batch, id), waits(log, 'events'));
  const receipts = createWriteBehind<Receipt>((batch) => store.receipts.write(batch), waits(log, 'receipts'));
  const monitor = startMonitor({ ...watched(parts), gate: lifecycle, onChange: healthLog(log) });
  const merchant = createExchange({ origin: config.backend.origin });
  const desk = createDeliveryDesk(store.ledger, (facts) => log.error(facts, 'a delivery is not written'));
  const offers = compileOffers(config);
  const onFailure = failureLog(log);

  const agents = plainExpress(express());
  agents.use(identify());
  agents.use(httpLog(log));
  agents.use(countUntilClosed(lifecycle));
  agents.use(probes(monitor));
  agents.use(checkHost(config.server.allowedHosts));
  agents.use(checkOrigin(config.server.allowedOrigins));
  agents.use(refuseEncodedSlash());
  publish(agents, catalogue, () => monitor.adapterHealth());
  agents.use(operatorRoutes(config.server.adminTokens, store.feed, store.receipts));

  const purchase = [
    resolve(catalogue, events),
    validate(),
    challenge(offers),
    ...tillLayers(parts, offers, lifecycle),
    counted(lifecycle, forward(merchant.exchange, desk)),
    counted(lifecycle, conclude(desk, receipts)),
  ];
  agents.post('/api/resources/:id/invoke', httpFront(), admit(lifecycle, config.limits.maxInFlight), purchase);
  agents.all('/api/resources/:id/invoke', allowOnly('POST'));

  agents.use(function noRoute() {
    throw new GatewayError('NOT_FOUND');
  });
  agents.use(present(onFailure));

  return {
    agents,
    management: managementApp(monitor, drain, onFailure),
    lifecycle,
    async close() {
      monitor.close();
      // Who is still silent has had the time of the drain; what it leaves behind is written down as undelivered.
      await merchant.abort();
      await lifecycle.idle(WRITE_DOWN_MS);
      await Promise.all([events.close(), receipts.close()]);
    },
  };
}

/** What waits for a store that is away is worth one line, not one for each attempt. */
function waits(log: Log, what: string) {
  return { onError: (cause: unknown) => log.warn({ err: cause }, `${what} wait for the store`) };
}

/** The layers between a challenge and the merchant; none when nothing has a price. */
function tillLayers({ store, rail }: GatewayParts, offers: Offers, lifecycle: Lifecycle): RequestHandler[] {
  if (rail === undefined) return [];
  const verifier = createProofVerifier((candidate) => rail.examine(candidate), store.ledger);
  const cashier = createCashier(store.ledger, rail);
  return [counted(lifecycle, verify(offers, verifier)), counted(lifecycle, settle(offers, cashier, lifecycle))];
}

/** What anyone may read: bytes made at start. */
function publish(agents: Express, catalogue: Catalogue, health: () => AdapterHealths): void {
  agents.get(
    '/api/resources',
    staticDocument(() => catalogue.listing),
  );
  agents.get(
    '/.well-known/agent-commerce',
    staticDocument(() => catalogue.discovery(health())),
  );
  agents.all(['/api/resources', '/.well-known/agent-commerce'], allowOnly('GET', 'HEAD'));
}
