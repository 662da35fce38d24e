import type { RequestHandler } from 'express';
import type { WatchedBackend } from '../backend/backend-connection.ts';
import type { BackendRequest } from '../backend/exchange.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import { type EventSink, type Journal, openJournal } from '../events/journal.ts';
import type { MandateService } from '../mandates/mandate-service.ts';
import type { DeliveryRecorder } from '../payments/delivery/delivery-recorder.ts';
import { type Deliverable, fetchForBuyer } from '../payments/delivery/redelivery.ts';
import type { PaymentLedger, PaymentRecord } from '../payments/ledger/ledger.ts';
import {
  type BuyerTokens,
  createBuyerTokens,
  openTokenKeys,
  type SharedSecrets,
} from '../payments/pricing/buyer-token.ts';
import { createFindEarlier, type EarlierScope, type FindEarlier } from '../payments/settlement/earlier-purchase.ts';
import { joining } from '../payments/settlement/join.ts';
import { createReconciler } from '../payments/settlement/reconciler.ts';
import { createLeases } from '../payments/settlement/reservations.ts';
import { createSettler, type SettlementParts } from '../payments/settlement/settle.ts';
import type { StoreLossPolicy } from '../payments/settlement/store-loss.ts';
import { storedMethod } from '../payments/settlement/stored-purchase.ts';
import { createProofVerifier, createUnprovenSignatures } from '../payments/settlement/verifier.ts';
import type { X402Rail } from '../payments/x402/create-rail.ts';
import type { Offers } from '../payments/x402/wire/offers.ts';
import type { X402Config } from '../payments/x402/wire/settings.ts';
import { trackInFlight } from '../pipeline/middleware/limit-concurrency.ts';
import { settle } from '../pipeline/middleware/settle.ts';
import { verify } from '../pipeline/middleware/verify.ts';
import { isRetrySafe } from '../pipeline/steps/backend-failed.ts';
import { backendOfRemoved, type RemovedBackend } from '../pipeline/steps/collecting.ts';
import type { Resource } from '../resources/resource.ts';
import type { ResourceConfig } from '../resources/settings.ts';
import { type ClientOf, wideNetwork } from '../server/rate-limit/client-address.ts';
import type { Lifecycle } from '../sidecar/lifecycle.ts';
import { type Log, reconcileLog } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { showRail } from '../telemetry/metrics/rail-metrics.ts';

/** What takes payments is made of. */
interface PaymentParts {
  readonly ledger: PaymentLedger;
  readonly rail: X402Rail;
  readonly onStoreLoss: StoreLossPolicy;
  /** What replay keys and offers are made of. */
  readonly scope: EarlierScope;
  readonly resources: readonly ResourceConfig[];
  /** For what was bought of resources that are in the configuration no more. */
  readonly removed: RemovedBackend;
  readonly offers: Offers;
  readonly events: EventSink;
  readonly merchant: Pick<WatchedBackend, 'exchange' | 'reserve'>;
  readonly deliveries: DeliveryRecorder;
  readonly tokens: BuyerTokens;
  /** Undefined: no mandates are accepted. */
  readonly mandateService: MandateService | undefined;
  readonly lifecycle: Lifecycle;
  /** Who sends a request. */
  readonly clientOf: ClientOf;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** What of the gateway decides whether payments are taken, and how it works. */
interface Shop {
  readonly config: Pick<GatewayConfig, 'x402' | 'resources' | 'merchant'>;
  readonly rail: X402Rail | undefined;
}

/** Everything between a challenge and the merchant. */
export interface Payments {
  /** Of a call, in this order. */
  readonly middleware: { readonly verify: RequestHandler; readonly settle: RequestHandler };
  /** What a call has paid for that the configuration does not serve. */
  readonly findEarlier: FindEarlier;
  /** No new background work; resolves when what runs is done, or after `atMostMs`. */
  stopReconciling(atMostMs: number): Promise<void>;
  /**
   * Gives up what this process still holds, so that another need not wait for the leases to end.
   */
  releaseLeases(): Promise<void>;
}

/** The buyers' secrets (contract 4.5); undefined where nothing can be paid. */
export function openBuyerTokens(
  { merchant, x402 }: Pick<GatewayConfig, 'merchant' | 'x402'>,
  shared: SharedSecrets,
): (BuyerTokens & { close(): void }) | undefined {
  if (x402 === undefined) return undefined;
  const keys = openTokenKeys(x402.buyerTokenSecrets, { ...x402, merchantId: merchant.id }, shared);
  return { ...createBuyerTokens(keys.current, x402), close: keys.close };
}

/** Undefined when nothing has a price. */
export function openPayments(
  { config, rail }: Shop,
  {
    tokens,
    ...parts
  }: Omit<PaymentParts, 'rail' | 'onStoreLoss' | 'scope' | 'resources' | 'tokens'> & {
    readonly tokens: BuyerTokens | undefined;
  },
): Payments | undefined {
  if (rail === undefined || config.x402 === undefined || tokens === undefined) return undefined;
  const { x402, merchant, resources } = config;
  const scope = { chainId: x402.chainId, asset: x402.asset, publicBaseUrl: merchant.publicBaseUrl };
  return openTill({ ...parts, tokens, rail, scope, onStoreLoss: storeLossPolicy(x402), resources });
}

/**
 * Opens the settlement: the middleware that takes payments, and the reconciler that finishes what
 * attempts left behind.
 */
function openTill(parts: PaymentParts): Payments {
  const { ledger, onStoreLoss, offers, mandateService, merchant, lifecycle, log, metrics } = parts;
  const rail = metrics.payments.rail(parts.rail);
  showRail(metrics, rail);
  const waits = reconcileLog(log);
  const leases = createLeases(ledger);
  let unclaimed = 0;
  metrics.counter({
    name: 'acg_payments_unclaimed_total',
    help:
      'Proofs refused with 409 although the chain shows them paid to us and the store has no record of them: after a loss of the store, or ' +
      'when another store or seller uses the same payee.',
    read: () => unclaimed,
  });
  const onUnclaimed: NonNullable<SettlementParts['onUnclaimed']> = (facts) => {
    unclaimed += 1;
    log.warn(facts, 'a payment that the chain shows and no record has is not known to be this buyer’s: answered 409');
  };
  const settler = createSettler({ ledger, rail, leases, onStoreLoss, onUnclaimed });
  const unproven = createUnprovenSignatures();
  metrics.counter({
    name: 'acg_contract_signatures_total',
    help:
      'Signatures that only a chain or a facilitator can verify, by what came of them. A growth of refused or crowded is somebody who ' +
      'sends garbage in the name of others; buyers who sign with a key are not held up by it.',
    label: 'outcome',
    read: () => unproven.count,
  });
  const verifier = createProofVerifier((candidate) => rail.examine(candidate), ledger, {
    unproven,
    tokens: parts.tokens,
  });
  const resources = new Map(parts.resources.map((resource) => [resource.id, deliverable(resource)]));
  const deliverableOf = ({ resourceId, backendRequest }: PaymentRecord): Deliverable =>
    resources.get(resourceId) ?? removedDeliverable(storedMethod(backendRequest), parts.removed);
  const reconciler = createReconciler({
    ledger,
    settler,
    gateOpen: () => lifecycle.accepting(),
    journalOf: (record) => journalOf(record, parts.events),
    deliverable: deliverableOf,
    deliver: (paid, journal) =>
      fetchForBuyer(paid, deliverableOf(paid.record), journal, merchant.exchange, parts.deliveries),
    reserveBackend: merchant.reserve,
    warn: (facts) => {
      metrics.notReconciled();
      waits(facts);
    },
  });
  reconciler.start();
  const gate = { accepting: () => lifecycle.accepting(), reserveBackend: merchant.reserve };
  return {
    middleware: {
      verify: trackInFlight(lifecycle, verify(offers, verifier, wideNetwork(parts.clientOf), mandateService)),
      settle: trackInFlight(lifecycle, settle(offers, joining(settler, ledger), gate, mandateService)),
    },
    findEarlier: createFindEarlier(ledger, parts.tokens, parts.scope),
    stopReconciling: (atMostMs) => reconciler.stop(atMostMs),
    releaseLeases: () => leases.releaseAll(),
  };
}

/** What the configuration says of payments that the store loses. */
function storeLossPolicy({ onStoreLoss, payToExclusive }: X402Config): StoreLossPolicy {
  if (onStoreLoss === 'refuse') return 'refuse';
  return payToExclusive ? 'deliver' : 'marked';
}

function journalOf({ requestId, callId, resourceId, channel }: PaymentRecord, events: EventSink): Journal {
  return openJournal({ requestId, callId, resourceId, adapter: channel }, events);
}

/** Of a resource that is in the configuration no more, for who paid before it was removed. */
function removedDeliverable(method: BackendRequest['method'] | undefined, removed: RemovedBackend): Deliverable {
  return method === undefined
    ? { ...removed, repeatable: false }
    : deliverable({ backend: backendOfRemoved(method, removed) });
}

function deliverable({ backend }: Pick<Resource, 'backend'>): Deliverable {
  const { timeoutMs, maxResponseBytes, headers } = backend;
  return { repeatable: isRetrySafe({ backend }), timeoutMs, maxResponseBytes, headers };
}
