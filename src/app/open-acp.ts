/** Opens the checkout service where ACP is enabled: its adapter, claims, backend and metrics. */

import type { ErrorRequestHandler, RequestHandler } from 'express';
import { acpAdapter, acpFailures } from '../adapters/acp/adapter.ts';
import { createAdmission } from '../adapters/acp/admission.ts';
import { createBackendService } from '../adapters/acp/backend-service.ts';
import { acpDiscovery } from '../adapters/acp/discovery.ts';
import { JUDGED_FIELDS } from '../adapters/acp/request.ts';
import { withoutIds } from '../adapters/acp/routes.ts';
import { createExchange } from '../backend/backend-connection.ts';
import type { Exchange } from '../backend/exchange.ts';
import { createIdempotency } from '../checkouts/machine.ts';
import { createSessions } from '../checkouts/sessions.ts';
import { type AcpSettings, longestTimeoutMs } from '../checkouts/settings.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import type { FailureListener } from '../pipeline/middleware/error-handler.ts';
import type { StaticDocument } from '../resources/static-document.ts';
import type { FieldJudge } from '../server/http/framing.ts';
import { belowMount } from '../server/http/target.ts';
import type { OpenedLoadShedder } from '../server/load-shedding/open-load-shedder.ts';
import { createSlots } from '../server/load-shedding/slots.ts';
import type { Lifecycle } from '../sidecar/lifecycle.ts';
import type { Store } from '../store/port/store.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { Watch } from '../telemetry/metrics/call-metrics.ts';
import { watchCheckouts } from '../telemetry/metrics/checkout-metrics.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { REAL_TIME } from '../time/time.ts';
import type { IngressGuards } from './ingress-guards.ts';
import type { WriteQueues } from './write-queues.ts';

/** What checkouts share with the calls of the gateway. */
interface AcpParts {
  readonly store: Pick<Store, 'checkouts'>;
  readonly events: WriteQueues['events'];
  readonly receipts: WriteQueues['receipts'];
  /** Every call passes its entrance first. */
  readonly ingressGuards: Pick<IngressGuards, 'entrance' | 'checkoutGuesses'>;
  readonly lifecycle: Pick<Lifecycle, 'accepting' | 'begin'>;
  readonly loadShedding: Pick<OpenedLoadShedder, 'slots' | 'sheddingFor'>;
  readonly watch: Pick<Watch, 'layer'>;
  readonly onFailure: FailureListener;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** The open checkouts of a gateway. */
export interface AcpService extends FieldJudge {
  /** Serves the mount and what lies below it, and passes on everything else. */
  readonly adapter: RequestHandler;
  /** Answers what is thrown there. */
  readonly failures: ErrorRequestHandler;
  readonly discovery: StaticDocument;
  /** The part of a raw path that the log may show. */
  readonly shownPath: (path: string) => string;
  /** Ends what still runs at the backend. */
  abort(): Promise<void>;
}

export function openAcp(
  { merchant, protocols: { acp } }: Pick<GatewayConfig, 'merchant' | 'protocols'>,
  parts: AcpParts,
): AcpService {
  if (!acp.enabled) throw new Error('ACP is not enabled');
  const { mountPath, discovery } = acp;
  const connection = createExchange({ origin: acp.backend.origin, reuse: false });
  return {
    mountPath,
    judgedFields: JUDGED_FIELDS,
    adapter: openAdapter(acp, merchant.id, connection.exchange, parts),
    failures: acpFailures(mountPath, parts.onFailure),
    discovery: acpDiscovery({ publicBaseUrl: merchant.publicBaseUrl, mountPath, settings: discovery }),
    shownPath(path) {
      const below = belowMount(mountPath, path);
      return below === undefined ? path : `${mountPath}${withoutIds(below)}`;
    },
    abort: () => connection.abort(),
  };
}

function openAdapter(
  settings: AcpSettings & { readonly mountPath: string },
  deploymentId: string,
  exchange: Exchange,
  parts: AcpParts,
): RequestHandler {
  const { store, events, receipts, ingressGuards, lifecycle, loadShedding, log, metrics } = parts;
  const { mountPath, backend, strictSemantics, authenticationErrors } = settings;
  const watch = watchCheckouts(metrics, log);
  const own = createSlots(settings.maxInFlight);
  const sessions = createSessions({
    claims: store.checkouts,
    settings: settings.idempotency,
    deploymentId,
    servesUnknown: settings.clients.length === 1 || backend.scopesByClient,
    time: REAL_TIME,
  });
  const { layer } = parts.watch;
  const clocks = {
    admit: layer('admit'),
    validate: layer('validate'),
    forward: layer('forward'),
    conclude: layer('conclude'),
  };
  return acpAdapter({
    mountPath,
    settings,
    entrance: ingressGuards.entrance,
    guesses: ingressGuards.checkoutGuesses,
    sessions,
    admit: createAdmission({
      gate: lifecycle,
      shedding: loadShedding.sheddingFor(own),
      slots: [loadShedding.slots, own],
    }),
    idempotency: createIdempotency({
      claims: store.checkouts,
      sessions,
      settings: settings.idempotency,
      deploymentId,
      longestTimeoutMs: longestTimeoutMs(backend),
      watch,
      time: REAL_TIME,
    }),
    backend: createBackendService({
      exchange,
      backend,
      strictSemantics,
      authenticationErrors,
      events,
      receipts,
      watch,
    }),
    entered: (step, res) => clocks[step](res),
  });
}
