/** Opens the checkout service where ACP is enabled: its adapter, claims, backend and metrics. */

import type { ErrorRequestHandler, RequestHandler } from 'express';
import { acpAdapter, acpFailures } from '../adapters/acp/adapter.ts';
import { createBackendService } from '../adapters/acp/backend-service.ts';
import { acpDiscovery } from '../adapters/acp/discovery.ts';
import { JUDGED_FIELDS, withoutIds } from '../adapters/acp/request.ts';
import { type BackendConnection, createExchange } from '../backend/backend-connection.ts';
import { BackendError, type Exchange } from '../backend/backend-exchange.ts';
import { createIdempotency } from '../checkouts/machine.ts';
import { createSessions } from '../checkouts/sessions.ts';
import { longestTimeoutMs } from '../checkouts/settings.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import type { FailureListener } from '../pipeline/middleware/error-handler.ts';
import type { StaticDocument } from '../resources/static-document.ts';
import { belowMount, type FieldJudge } from '../server/http/request.ts';
import type { OpenedLoadShedder } from '../server/limits/load-shedder.ts';
import { Slots } from '../server/limits/load-shedding.ts';
import type { Fence, Lifecycle } from '../sidecar/lifecycle.ts';
import type { Store } from '../store/documents/store.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { Watch } from '../telemetry/metrics/call-metrics.ts';
import { watchCheckouts } from '../telemetry/metrics/checkout-metrics.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { REAL_TIME } from '../time/time.ts';
import type { IngressGuards } from './ingress-guards.ts';
import type { WriteQueues } from './store-keeping.ts';

/** Parts that checkouts share with the calls of the gateway. */
interface AcpParts {
  readonly store: Pick<Store, 'checkouts'>;
  readonly events: WriteQueues['events'];
  readonly receipts: WriteQueues['receipts'];
  readonly lifecycle: Pick<Lifecycle, 'accepting' | 'begin'>;
  readonly fence: Pick<Fence, 'up' | 'pass'>;
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
  /** Answers errors of the adapter. */
  readonly failures: ErrorRequestHandler;
  readonly discovery: StaticDocument;
  /** The part of a raw path that the log may show. */
  readonly shownPath: (path: string) => string;
}

type CheckoutSettings = Pick<GatewayConfig, 'merchant' | 'protocols'>;

/** Parts that outlive a configuration: the way to the backend, slots in flight, counts. */
interface OpenedAcp {
  /** The checkouts as a configuration wants them; the session table is in the store. */
  service(config: CheckoutSettings, guards: Guards): AcpService;
  readonly connection: BackendConnection;
}

/** Every checkout call passes `entrance` first. */
type Guards = Pick<IngressGuards, 'entrance' | 'checkoutGuesses'>;

/** Opens checkouts; ACP must be enabled. `inUse`: the configuration in use. */
export function openAcp(inUse: { readonly config: CheckoutSettings }, parts: AcpParts): OpenedAcp {
  const { store, events, receipts, lifecycle, fence, loadShedding } = parts;
  const connection = createExchange({ origin: enabledOf(inUse.config).backend.origin, reuse: false });
  // A call whose body was read when the backend began to restart waits before it is sent.
  const exchange: Exchange = async (request, limits) => {
    if (fence.up() && !(await fence.pass())) throw new BackendError('unreachable', false);
    return connection.exchange(request, limits);
  };
  const watch = watchCheckouts(parts.metrics, parts.log);
  const own = new Slots(() => enabledOf(inUse.config).maxInFlight);
  const { layer } = parts.watch;
  const clocks = {
    admit: layer('admit'),
    validate: layer('validate'),
    forward: layer('forward'),
    conclude: layer('conclude'),
  };
  const openAdapter = (settings: ReturnType<typeof enabledOf>, deploymentId: string, guards: Guards) => {
    const { mountPath, backend, strictSemantics, authenticationErrors, idempotency } = settings;
    const shared = { claims: store.checkouts, settings: idempotency, deploymentId, time: REAL_TIME };
    const servesUnknown = settings.clients.length === 1 || backend.scopesByClient;
    const sessions = createSessions({ ...shared, servesUnknown });
    return acpAdapter({
      mountPath,
      settings,
      entrance: guards.entrance,
      guesses: guards.checkoutGuesses,
      sessions,
      fence,
      gate: lifecycle,
      shedding: loadShedding.sheddingFor(own),
      slots: [loadShedding.slots, own],
      idempotency: createIdempotency({ ...shared, sessions, longestTimeoutMs: longestTimeoutMs(backend), watch }),
      openBackendCall: createBackendService({
        ...{ exchange, backend, strictSemantics, authenticationErrors, events, receipts, watch },
      }),
      entered: (step, res) => clocks[step](res),
    });
  };
  return {
    service(config, guards) {
      const { merchant } = config;
      const acp = enabledOf(config);
      const { mountPath, discovery } = acp;
      return {
        mountPath,
        judgedFields: JUDGED_FIELDS,
        adapter: openAdapter(acp, merchant.id, guards),
        failures: acpFailures(mountPath, parts.onFailure),
        discovery: acpDiscovery({ publicBaseUrl: merchant.publicBaseUrl, mountPath, settings: discovery }),
        shownPath(path) {
          const below = belowMount(mountPath, path);
          return below === undefined ? path : `${mountPath}${withoutIds(below)}`;
        },
      };
    },
    connection,
  };
}

/** @throws Error for another configuration: switching the adapter off needs a restart */
function enabledOf({ protocols: { acp } }: Pick<CheckoutSettings, 'protocols'>) {
  if (!acp.enabled) throw new Error('the checkouts were switched off without a restart');
  return acp;
}
