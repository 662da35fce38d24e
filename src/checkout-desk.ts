import type { ErrorRequestHandler, RequestHandler } from 'express';
import type { Backlog } from './backlog.ts';
import type { StaticDocument } from './catalogue/resource.ts';
import { longestTimeoutMs } from './checkouts/longest-timeout.ts';
import { createIdempotency } from './checkouts/machine.ts';
import { createSessions } from './checkouts/sessions.ts';
import type { AcpSettings } from './checkouts/settings.ts';
import type { GatewayConfig } from './config/config.ts';
import type { Edges } from './edges.ts';
import { createAdmission } from './fronts/acp/admission.ts';
import { acpDiscovery } from './fronts/acp/discovery.ts';
import { acpFailures, acpFront } from './fronts/acp/front.ts';
import { JUDGED_FIELDS } from './fronts/acp/head.ts';
import { createMerchantSide } from './fronts/acp/merchant-side.ts';
import { withoutIds } from './fronts/acp/routes.ts';
import type { FieldJudge } from './http/framing.ts';
import { belowMount } from './http/target.ts';
import type { FailureListener } from './layers/present.ts';
import { createExchange } from './merchant/exchange.ts';
import type { Exchange } from './merchant/types.ts';
import type { Doorway } from './overload/doorway.ts';
import { createPlaces } from './overload/places.ts';
import type { Lifecycle } from './sidecar/lifecycle.ts';
import type { Store } from './store/store.ts';
import { watchCheckouts } from './telemetry/checkout-watch.ts';
import type { Log } from './telemetry/log.ts';
import type { Metrics } from './telemetry/metrics.ts';
import type { Watch } from './telemetry/watch.ts';
import { REAL_TIME } from './time.ts';

/** What of the gateway the checkouts share with its calls. */
export interface CheckoutDeskParts {
  readonly store: Pick<Store, 'checkouts'>;
  readonly backlog: Pick<Backlog, 'events' | 'receipts'>;
  /** Every call passes its entrance first. */
  readonly edges: Pick<Edges, 'entrance' | 'checkoutGuesses'>;
  readonly lifecycle: Pick<Lifecycle, 'accepting' | 'begin'>;
  readonly doorway: Pick<Doorway, 'places' | 'sheddingFor'>;
  readonly watch: Pick<Watch, 'layer'>;
  readonly onFailure: FailureListener;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Everything about checkouts that a gateway has open. */
export interface CheckoutDesk extends FieldJudge {
  /** Serves the mount and what lies below it, and hands on everything else. */
  readonly front: RequestHandler;
  /** Answers what was thrown there. */
  readonly failures: ErrorRequestHandler;
  readonly discovery: StaticDocument;
  /** What of a raw path the log may have. */
  readonly shownPath: (path: string) => string;
  /** Ends what still runs at the merchant. */
  abort(): Promise<void>;
}

/** Opens the desk of a shop that serves ACP. */
export function openCheckoutDesk(
  { merchant, protocols: { acp } }: Pick<GatewayConfig, 'merchant' | 'protocols'>,
  parts: CheckoutDeskParts,
): CheckoutDesk | undefined {
  if (!acp.enabled) return undefined;
  const { mountPath, discovery } = acp;
  const hop = createExchange({ origin: acp.backend.origin, reuse: false });
  return {
    mountPath,
    judgedFields: JUDGED_FIELDS,
    front: frontOf(mountPath, acp, merchant.id, hop.exchange, parts),
    failures: acpFailures(mountPath, parts.onFailure),
    discovery: acpDiscovery({ publicBaseUrl: merchant.publicBaseUrl, mountPath, settings: discovery }),
    shownPath(path) {
      const below = belowMount(mountPath, path);
      return below === undefined ? path : `${mountPath}${withoutIds(below)}`;
    },
    abort: () => hop.abort(),
  };
}

function frontOf(
  mountPath: string,
  settings: AcpSettings,
  deploymentId: string,
  exchange: Exchange,
  parts: CheckoutDeskParts,
): RequestHandler {
  const { store, backlog, edges, lifecycle, doorway, log, metrics } = parts;
  const { backend, strictSemantics, authenticationErrors } = settings;
  const watch = watchCheckouts(metrics, log);
  const own = createPlaces(settings.maxInFlight);
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
  return acpFront({
    mountPath,
    settings,
    entrance: edges.entrance,
    guesses: edges.checkoutGuesses,
    sessions,
    admit: createAdmission({
      gate: lifecycle,
      shedding: doorway.sheddingFor(own),
      places: [doorway.places, own],
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
    merchant: createMerchantSide({ exchange, backend, strictSemantics, authenticationErrors, ...backlog, watch }),
    entered: (step, res) => clocks[step](res),
  });
}
