/**
 * Opens the services that outlive a configuration because they keep state or connections. They read
 * limits and settings of the configuration in use at each use.
 */

import type { GatewayConfig } from '../config/document/config.ts';
import type { MandateRegister } from '../mandates/register.ts';
import { openEventStream } from '../operator/api/stream.ts';
import type { RequestLine, Route } from '../passthrough/route.ts';
import type { X402Rail } from '../payments/x402/create-rail.ts';
import { needsMandate } from '../payments/x402/wire/challenge.ts';
import type { Offers } from '../payments/x402/wire/offers.ts';
import { PAYMENT_SIGNATURE } from '../payments/x402/wire/types.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import { idPrefixes } from '../server/http/access-record.ts';
import { clientNetwork, wideNetwork } from '../server/limits/client-address.ts';
import { openLoadShedder, ProofStanding } from '../server/limits/load-shedder.ts';
import { createAnswerBudget } from '../server/limits/load-shedding.ts';
import type { AppProbeSettings } from '../sidecar/app-probe-settings.ts';
import { createFence, createLifecycle } from '../sidecar/lifecycle.ts';
import type { Store } from '../store/documents/store.ts';
import type { Monitor } from '../telemetry/health/monitor.ts';
import { failureLog, type Log } from '../telemetry/log/log.ts';
import { watchOver } from '../telemetry/metrics/call-metrics.ts';
import { createMetrics } from '../telemetry/metrics/metrics.ts';
import { PASSED_ON, type Tracing } from '../telemetry/traces/tracing.ts';
import { openIngressCounts } from './ingress-guards.ts';
import { loadAdapters } from './mount-routes.ts';
import type { OpenMandates } from './open-ap2.ts';
import { allExchanges, openBackend } from './open-backend.ts';
import { openDeliveryRecorder, openPayments } from './open-payments.ts';
import type { OpenSigning } from './open-signing.ts';
import { openWriteQueues, requireService, startHousekeeping } from './store-keeping.ts';

/** How long the last calls may take to write down how they ended, milliseconds. */
const WRITE_DOWN_MS = 2_000;

const OWN: Route = { kind: 'own' };

/** Parts of a gateway, which its caller opens and closes. */
export interface GatewayParts {
  readonly config: GatewayConfig;
  readonly store: Store;
  /** Undefined when nothing has a price. */
  readonly rail: X402Rail | undefined;
  readonly log: Log;
  /** Undefined: no collector takes traces. */
  readonly tracing?: Tracing;
  /** Probes that the gateway makes of the merchant's container; none unless given. */
  readonly appProbes?: AppProbeSettings;
  /** The share of time since its last call that the event loop worked; measured unless given. */
  readonly busy?: () => number;
}

/** The configuration in use, and the parts made of it; a reload replaces all members. */
export interface InUse {
  config: GatewayConfig;
  /** When it was loaded, Unix milliseconds. */
  loadedAtMs: number;
  /** Undefined until the first one is made. */
  catalogue: Catalogue | undefined;
  offers: Offers;
  mandates: OpenMandates | undefined;
  /** Undefined: nothing is signed. */
  signing: OpenSigning | undefined;
  /** Undefined: all requests are the gateway's own. */
  routeOf: ((req: RequestLine) => Route) | undefined;
}

/** The first configuration, of which nothing is made yet. */
export function firstInUse(config: GatewayConfig): InUse {
  return {
    ...{ config, loadedAtMs: Date.now(), catalogue: undefined },
    ...{ offers: new Map(), mandates: undefined, signing: undefined, routeOf: undefined },
  };
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

/**
 * Makes the opener of mandates, which all configurations share. AP2 is loaded where the
 * configuration of the start accepts mandates: to accept them later needs a restart.
 */
async function createMandateOpener({ authorization }: Pick<GatewayConfig, 'authorization'>, register: MandateRegister) {
  const loaded = authorization.ap2 === undefined ? undefined : await import('./open-ap2.ts');
  const opener = loaded?.createAp2Opener(register);
  return {
    /**
     * Undefined where no mandates are accepted: the pipeline then has no middleware for them.
     * `before`: of the present configuration. Issuers that stay keep the keys that were fetched.
     */
    open(
      { authorization: { ap2 }, resources }: Pick<GatewayConfig, 'authorization' | 'resources'>,
      before?: OpenMandates,
    ): OpenMandates | undefined {
      if (ap2 !== undefined && opener !== undefined) return opener.open(ap2, before);
      // `loadConfig` refuses this. Without the check a bug there would sell without mandates.
      if (resources.some(needsMandate)) throw new Error('a resource requires mandates, and none are accepted');
      return undefined;
    },
    /** Fetches no more keys. */
    close: async () => opener?.close(),
  };
}

/** Everything that outlives a configuration, open. */
export type Services = Awaited<ReturnType<typeof openServices>>;

/** Opens all services. `inUse` may hold no more than the first configuration. */
export async function openServices(parts: GatewayParts, inUse: InUse) {
  const { store, log, tracing = PASSED_ON } = parts;
  // All modules load before a connection opens: loading delays answers that have a deadline.
  const { checkouts, passing, loadedAdapters, mandateOpener } = await loadEnabled(inUse.config, store);
  await requireService(store, inUse.config.merchant, log);
  const lifecycle = createLifecycle();
  const fence = createFence();
  const metrics = createMetrics({
    sold: (id) => inUse.catalogue?.byId.has(id) === true,
    offers: () => inUse.offers,
    census: () => store.census(),
  });
  const ledger = metrics.payments.ledger(store.ledger);
  const writeQueues = openWriteQueues(store, log, metrics);
  const { events, receipts } = writeQueues;
  const housekeeping = startHousekeeping(store, log, metrics);
  const ingress = openIngressCounts(inUse, log, metrics);
  const backend = openBackend(inUse, fence, log, metrics);
  const deliveries = openDeliveryRecorder(inUse, ledger, log, metrics);
  const proofs = new ProofStanding(wideNetwork((req) => clientNetwork(inUse.config.server.trustProxy)(req)));
  const shared = { lifecycle, fence, ledger, events, deliveries, backend, log, metrics };
  const payments = openPayments({
    ...shared,
    inUse,
    rail: parts.rail,
    work: parts.store.work,
    noteProof: proofs.note,
  });
  const stream = openEventStream({
    feed: store.feed,
    gate: lifecycle,
    maxStreams: () => inUse.config.limits.maxStreams,
    clientOf: (req) => clientNetwork(inUse.config.server.trustProxy)(req),
    onTrouble: (cause) => log.warn({ err: cause }, 'event streams wait for the store'),
  });
  const mounts = idPrefixes(inUse.config.protocols);
  const routeOf = (req: RequestLine): Route => inUse.routeOf?.(req) ?? OWN;
  const loadShedding = openLoadShedder({
    maxInFlight: () => inUse.config.limits.maxInFlight,
    mounts,
    lifecycle,
    carriesProof: ({ headers }) => headers[PAYMENT_SIGNATURE] !== undefined,
    proofs,
    routeOf,
    onShed: (shed) => log.warn({ shed }, 'busy: calls were refused'),
    onLost: (slots) => log.error({ slots }, 'a bug: slots outlived the longest call and are free again; restart'),
    ...(parts.busy === undefined ? {} : { busy: parts.busy }),
  });
  const budget = createAnswerBudget(() => inUse.config.limits.maxBufferedBytes);
  const watch = watchOver(metrics.calls, tracing);
  const onFailure = failureLog(log);
  const acp = checkouts?.openAcp(inUse, { ...shared, store, receipts, loadShedding, watch, onFailure });
  const settings = inUse.config.backend.passthrough;
  const passthrough =
    settings &&
    passing?.openPassthrough({
      ...{ inUse, settings, routeOf, lifecycle, fence, log, metrics },
      busy: loadShedding.busy,
    });
  const exchanges = allExchanges(backend, acp?.connection, passthrough);
  return {
    ...{ ...shared, store, receipts, mounts, ingress, payments, stream, loadShedding, budget, watch, onFailure },
    ...{ acp, passthrough, exchanges, loadedAdapters, mandateOpener, writeQueues, housekeeping, tracing },
  };
}

/**
 * Flushes what waits for the store and stops the background work. `closeInUse` closes the
 * generation in use.
 */
export async function closeServices(services: Services, monitor: Monitor, closeInUse: () => void): Promise<void> {
  const { lifecycle, payments, backend, acp } = services;
  monitor.close();
  services.stream.close();
  services.ingress.close();
  services.loadShedding.close();
  services.passthrough?.close();
  await payments?.stopReconciling(WRITE_DOWN_MS);
  // A backend that is still silent has had the time of the drain; its calls end as undelivered.
  await Promise.all([backend.abort(), acp?.connection.abort()]);
  await lifecycle.idle(WRITE_DOWN_MS);
  closeInUse();
  await payments?.releaseLeases();
  await services.mandateOpener.close();
  await services.writeQueues.close();
  await services.housekeeping.stop();
}
