/**
 * Opens payments between a challenge and the backend: the verifier, the settler, the recorder of
 * deliveries, and the reconciler, which finishes attempts that broke off.
 */

import { isDeepStrictEqual } from 'node:util';
import type { Request } from 'express';
import type { WatchedBackend } from '../backend/backend-connection.ts';
import { type BackendRequest, NONE_RELAYED, TOO_LARGE } from '../backend/backend-exchange.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import { USUAL_LIMITS } from '../config/sections/resources.ts';
import { protocolOf } from '../events/event.ts';
import { type EventSink, type Journal, openJournal } from '../events/journal.ts';
import { createDeliveryRecorder, type DeliveryRecorder } from '../payments/delivery/delivery-recorder.ts';
import { type Deliverable, fetchForBuyer } from '../payments/delivery/fetch-answer.ts';
import type { PaymentLedger, PaymentRecord } from '../payments/ledger/ledger.ts';
import { MAX_PAUSE_MS } from '../payments/ledger/table.ts';
import {
  type BuyerTokens,
  createBuyerTokens,
  openTokenKeys,
  type SharedSecrets,
  type TokenKeys,
} from '../payments/pricing/buyer-token.ts';
import { createReplacedOffers } from '../payments/settlement/accepted-offer.ts';
import { createLeases, type Leases } from '../payments/settlement/attempt.ts';
import { createFindKnown, createFindOwn } from '../payments/settlement/known-payment.ts';
import { createUnpaidWork, type SharedWork } from '../payments/settlement/places.ts';
import { createReconciler, type Reconciler } from '../payments/settlement/reconciler.ts';
import { createSettler, joining, type SettlementParts, type Settler, UNKEPT } from '../payments/settlement/settle.ts';
import { type PaymentContext, readStoredProof, storedMethod, unreadable } from '../payments/settlement/terms.ts';
import { createProofVerifier, createUnprovenSignatures } from '../payments/settlement/verifier.ts';
import type { X402Rail } from '../payments/x402/create-rail.ts';
import { isPaidIn, type Offers, whyElsewhere } from '../payments/x402/wire/offers.ts';
import { entriesIn, type X402Config } from '../payments/x402/wire/settings.ts';
import { backendOfRemoved, createCollector, type RemovedBackend } from '../pipeline/collecting.ts';
import { createSelling } from '../pipeline/middleware/challenge.ts';
import { createQuotes } from '../pipeline/middleware/quotes.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import { isRepeatable, type Resource } from '../resources/resource.ts';
import type { ResourceConfig } from '../resources/settings.ts';
import { type ClientOf, wideNetwork } from '../server/limits/client-address.ts';
import type { NoteProof } from '../server/limits/load-shedder.ts';
import type { Fence, Lifecycle } from '../sidecar/lifecycle.ts';
import { type Log, reconcileLog } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { showRail } from '../telemetry/metrics/payment-metrics.ts';
import type { OpenSigning } from './open-signing.ts';
import { isOfService } from './store-keeping.ts';

/** Most open payments that a start looks at. */
const LISTED = 1_000;

type PaymentSettings = Pick<
  GatewayConfig,
  'x402' | 'alternatives' | 'blockedPayers' | 'resources' | 'merchant' | 'backend' | 'limits'
>;

/** Parts that payments share with the gateway, over all configurations. */
interface PaymentParts {
  /** The present configuration. */
  readonly inUse: { readonly config: PaymentSettings; readonly signing: Pick<OpenSigning, 'contextOf'> | undefined };
  /** Undefined when nothing has a price. */
  readonly rail: X402Rail | undefined;
  readonly ledger: PaymentLedger;
  /** The budget of unpaid work of all processes; undefined: this process is the only one. */
  readonly work: SharedWork | undefined;
  readonly events: EventSink;
  readonly backend: Pick<WatchedBackend, 'exchange' | 'reserve'>;
  readonly deliveries: DeliveryRecorder;
  readonly lifecycle: Lifecycle;
  readonly fence: Pick<Fence, 'backendStays'>;
  /** Gets the end of each proof, which decides the turn of later calls. */
  readonly noteProof: NoteProof;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** The parts of one configuration that sell for money. */
interface SaleParts {
  readonly config: PaymentSettings;
  readonly tokens: BuyerTokens | undefined;
  readonly catalogue: Catalogue;
  readonly offers: Offers;
  readonly clientOf: ClientOf;
  readonly contextOf: PaymentContext | undefined;
}

export type OpenedPayments = NonNullable<ReturnType<typeof openPayments>>;

/** Opens payments for the life of the process. Undefined when nothing has a price. */
export function openPayments(parts: PaymentParts) {
  const { inUse, ledger, backend, log, metrics } = parts;
  const { x402 } = inUse.config;
  if (parts.rail === undefined || x402 === undefined) return undefined;
  const rail = metrics.payments.rail(parts.rail);
  showRail(metrics, rail);
  const leases = createLeases(ledger);
  const onUnclaimed = countUnclaimed(log, metrics);
  const unpaidWork = createUnpaidWork(() => inUse.config.limits.unpaidWork, undefined, parts.work);
  const quotes = createQuotes({
    ...{ exchange: backend.exchange, limits: () => inUse.config.limits.unpaidWork },
    warn: (facts) => log.warn(facts, 'no price for an input, so nothing was offered'),
  });
  const settlement = {
    ...{ ledger, rail, leases, unpaidWork, onUnclaimed, onUnpaid: countUnpaid(log, metrics) },
    payeeRules: payeeRules(entriesIn(inUse.config)),
  };
  const settler = createSettler(settlement);
  const joined = joining(settler, ledger);
  const unproven = createUnprovenSignatures();
  metrics.counter({
    name: 'acg_contract_signatures_total',
    help:
      'Signatures that only a chain or a facilitator can verify, by what came of them. When refused or crowded grows, a client sends ' +
      'garbage in the name of others; buyers who sign with a key are not held up by it.',
    label: 'outcome',
    read: () => unproven.count,
  });
  void listOthers(ledger, entriesIn(inUse.config), log);
  const replaced = createReplacedOffers();
  const reconciler = openReconciler(parts, settler, leases);
  const accepting = settlementGate(parts);
  const assets = entriesIn(inUse.config);
  const examine: X402Rail['examine'] = (candidate) => rail.examine(candidate);
  return {
    /** Makes the parts of one configuration for the middleware; undefined without buyer tokens. */
    sale({ config, tokens, catalogue, offers, clientOf, contextOf }: SaleParts) {
      if (tokens === undefined) return undefined;
      const { blockedPayers } = config;
      const verifier = createProofVerifier(examine, { unproven, tokens, replaced, blockedPayers });
      const networkOf = wideNetwork(clientOf);
      const selling = createSelling(offers, {
        worksUnpaid: (req, id) => !unpaidWork.exhausted(id, networkOf(req)),
        askQuote: (asked, req) => quotes.ask({ ...asked, network: networkOf(req) }),
      });
      const { noteProof } = parts;
      const quoteBought = (req: Request): void => quotes.bought(networkOf(req));
      const gate = { accepting, reserveBackend: backend.reserve, networkOf, noteProof, quoteBought, contextOf };
      const scope = { assets, publicBaseUrl: config.merchant.publicBaseUrl };
      const collector = createCollector({
        ...{ find: createFindKnown(ledger, scope), verifier, networkOf, catalogue },
        ...{ events: parts.events, removed: removedBackend(config) },
      });
      return { selling, verifier, settler: joined, gate, collector, findOwn: createFindOwn(ledger, scope) };
    },
    /** Puts a configuration into use, and `after` in the place of the offers `before`. */
    use(next: PaymentSettings, before: Offers, after: Offers): void {
      settlement.payeeRules = payeeRules(entriesIn(next));
      replaced.replace(before, after);
    },
    /** The entries of `payments.x402` that cannot be paid now. */
    away: () => rail.away(),
    /** Failed work of the backend, for which nothing was to be paid, the latest first. */
    failedWork: (limit: number) => unpaidWork.failed(limit),
    /** Starts no background work; resolves when running work ends, or after `atMostMs`. */
    stopReconciling: (atMostMs: number) => reconciler.stop(atMostMs),
    /** Gives up the leases of this process, so that no other one waits for their end. */
    releaseLeases: () => leases.releaseAll(),
  };
}

const STRICT = { payToExclusive: false, onStoreLoss: 'refuse', offered: false } as const;

/** The rules that a settlement reads; the strict ones for an asset that no entry has. */
function payeeRules(entries: readonly X402Config[]): SettlementParts['payeeRules'] {
  return (paid) => entries.find((entry) => isPaidIn(paid, entry)) ?? STRICT;
}

/** The call of a removed resource: its own headers are in the configuration no more. */
function removedBackend({ backend }: Pick<GatewayConfig, 'backend'>): RemovedBackend {
  return { ...USUAL_LIMITS, headers: backend.headers };
}

/** The buyers' secrets of one configuration. */
export interface OpenBuyerTokens extends BuyerTokens {
  readonly keys: TokenKeys;
  readonly secrets: readonly string[];
}

/**
 * The buyers' secrets (contract 4.5); undefined where nothing can be paid. `before`: those of the
 * present configuration, whose keys stay where the secrets do: a shared key is agreed on once.
 */
export function openBuyerTokens(
  { merchant, x402 }: Pick<GatewayConfig, 'merchant' | 'x402'>,
  shared: SharedSecrets,
  before?: OpenBuyerTokens,
): OpenBuyerTokens | undefined {
  if (x402 === undefined) return undefined;
  const { buyerTokenSecrets: secrets } = x402;
  const keys =
    before !== undefined && isDeepStrictEqual(before.secrets, secrets)
      ? before.keys
      : openTokenKeys(secrets, { ...x402, merchantId: merchant.id }, shared);
  return { ...createBuyerTokens(keys.current), keys, secrets };
}

/** Opens the recorder of deliveries, which logs and counts those that the store did not take. */
export function openDeliveryRecorder(
  inUse: { readonly config: Pick<GatewayConfig, 'x402'> },
  ledger: PaymentLedger,
  log: Log,
  metrics: Metrics,
): DeliveryRecorder {
  return createDeliveryRecorder(ledger, () => (inUse.config.x402?.keepAnswerSeconds ?? 0) * 1_000, {
    unwritten(facts) {
      metrics.dropped('delivery', 1);
      log.error(facts, 'a delivery is not written');
    },
    unmarked: (facts) => log.warn(facts, 'an answer leaves before the store has the mark that it may'),
  });
}

/** Logs open payments that only a gateway with another network or asset can finish. */
async function listOthers(ledger: PaymentLedger, own: readonly X402Config[], log: Log): Promise<void> {
  const due = await ledger.due(LISTED, MAX_PAUSE_MS).catch(() => []);
  const others = due.filter((record) => whyElsewhere(record, own) !== undefined);
  if (others.length === 0) return;
  const payments = others.map(({ payId, state, network, asset }) => ({ payId, state, network, asset }));
  log.warn(
    { payments },
    'open payments of another network or asset: a gateway with that configuration can finish them until a day after their window',
  );
}

function countUnclaimed(log: Log, metrics: Metrics): NonNullable<SettlementParts['onUnclaimed']> {
  let unclaimed = 0;
  metrics.counter({
    name: 'acg_payments_unclaimed_total',
    help:
      'Proofs refused with 409 although the chain shows them paid to payTo: another store or seller has the same payee, or the store has ' +
      'lost the record.',
    read: () => unclaimed,
  });
  return (facts) => {
    unclaimed += 1;
    log.warn(facts, 'a payment that the chain shows is not known to be this buyer’s at this store: answered 409');
  };
}

function countUnpaid(log: Log, metrics: Metrics): NonNullable<SettlementParts['onUnpaid']> {
  const unpaid = { refused: 0, failed: 0, too_large: 0, unkept: 0 };
  const failed = ['backend_4xx', 'backend_5xx', 'redirect_not_followed', 'timeout', 'transport'];
  const causes: Readonly<Record<string, keyof typeof unpaid>> = {
    ...Object.fromEntries(failed.map((reason) => [reason, 'failed'])),
    ...{ [TOO_LARGE]: 'too_large', [UNKEPT]: 'unkept' },
  };
  metrics.counter({
    name: 'acg_unpaid_work_total',
    help:
      'Calls that the backend worked for and that were not paid, of resources with settle: after; GET /api/receipts/unpaid lists ' +
      'them. refused: the payment came to nothing. failed: the backend gave no answer to sell. too_large: the answer was too large to be kept, so nothing was taken for it. ' +
      'unkept: the store did not confirm that it keeps the answer, so nothing was taken for it.',
    label: 'cause',
    read: () => unpaid,
  });
  return (facts) => {
    unpaid[causes[facts.reason] ?? 'refused'] += 1;
    log.warn(facts, 'the backend worked for a call that is not paid');
  };
}

/** Allows a settlement only while the process accepts calls and the backend stays up. */
function settlementGate({ lifecycle, fence }: Pick<PaymentParts, 'lifecycle' | 'fence'>): () => boolean {
  return () => lifecycle.accepting() && fence.backendStays();
}

function openReconciler(parts: PaymentParts, settler: Settler, { running }: Pick<Leases, 'running'>): Reconciler {
  const { inUse, ledger, backend, events, deliveries, log, metrics } = parts;
  const deliverableOf = ({ resourceId, backendRequest }: PaymentRecord): Deliverable => {
    const config = inUse.config;
    const resource = config.resources.find(({ id }) => id === resourceId);
    return resource === undefined
      ? removedDeliverable(storedMethod(backendRequest), removedBackend(config))
      : deliverable(resource);
  };
  const warn = reconcileLog(log);
  const reconciler = createReconciler({
    begin: () => parts.lifecycle.begin(),
    ledger,
    settler,
    running,
    gateOpen: settlementGate(parts),
    journalOf: (record) => journalOf(record, events),
    isOurs: (record) => isOurs(record, inUse.config.merchant),
    deliverable: deliverableOf,
    deliver(paid, journal) {
      const resource = deliverableOf(paid.record);
      return fetchForBuyer(paid, resource, journal, backend.exchange, deliveries, inUse.signing?.contextOf);
    },
    reserveBackend: backend.reserve,
    warn(facts) {
      metrics.notReconciled();
      warn(facts);
    },
  });
  reconciler.start();
  return reconciler;
}

/** Whether a purchase was made at this service, as far as its proof names its resource. */
function isOurs(record: PaymentRecord, merchant: GatewayConfig['merchant']): boolean {
  const url = unreadable(record) === undefined ? readStoredProof(record).proof.payload.resource?.url : undefined;
  return url === undefined || isOfService(merchant, url);
}

function journalOf({ requestId, callId, resourceId, channel }: PaymentRecord, events: EventSink): Journal {
  return openJournal({ requestId, callId, resourceId, adapter: protocolOf(channel) }, events);
}

/** The delivery of a purchase whose resource is in the configuration no more. */
function removedDeliverable(method: BackendRequest['method'] | undefined, removed: RemovedBackend): Deliverable {
  return method === undefined
    ? { ...removed, path: '', repeatable: false, relayStatuses: NONE_RELAYED }
    : deliverable({ backend: backendOfRemoved(method, removed) });
}

function deliverable({ backend }: Pick<Resource | ResourceConfig, 'backend'>): Deliverable {
  const { path, timeoutMs, maxResponseBytes, relayStatuses, headers } = backend;
  return { path, repeatable: isRepeatable(backend), timeoutMs, maxResponseBytes, relayStatuses, headers };
}
