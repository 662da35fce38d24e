import { randomBytes } from 'node:crypto';
import { beforeEach } from 'node:test';
import type { HeldConnection } from '../../../src/backend/exchange.ts';
import type { EventDraft } from '../../../src/events/event.ts';
import { type Journal, openJournal } from '../../../src/events/journal.ts';
import {
  createDeliveryRecorder,
  type DeliveryFacts,
  type DeliveryRecorder,
} from '../../../src/payments/delivery/delivery-recorder.ts';
import type { PaymentLedger, PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import type { Lease } from '../../../src/payments/settlement/reservations.ts';
import { createSettler } from '../../../src/payments/settlement/settle.ts';
import type { Paid, SettlementRequest, SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import type { StoreLossPolicy } from '../../../src/payments/settlement/store-loss.ts';
import { storedProof } from '../../../src/payments/settlement/stored-purchase.ts';
import type { PaymentRequirements, Proof } from '../../../src/payments/x402/wire/types.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import { type Store, StoreError } from '../../../src/store/port/store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/open.ts';
import { terms as sampleTerms } from '../ledger/samples.ts';
import { scriptedRail } from './scripted-rail.ts';
import { skippedTime } from './virtual-time.ts';

/** When every test begins, milliseconds of the store's clock. */
export const NOON_MS = 1_800_000_000_000;
/** How long a token opens a delivered answer, milliseconds. */
export const KEEP_ANSWER_MS = 60_000;
/** How long a sample proof is valid at noon, seconds. */
const VALID_FOR_S = 120;

const OFFER: PaymentRequirements = {
  scheme: 'exact',
  network: 'eip155:1',
  asset: '0xa',
  payTo: '0xb',
  amount: '7',
  maxTimeoutSeconds: VALID_FOR_S,
  extra: { name: 'n', version: '1', assetTransferMethod: 'eip3009', paymentFlow: 'upfront' },
};

/**
 * A till for each test: a real ledger on a clock that the test moves, and a rail that says what the
 * test wants. Call it at the top of a `describe`; what it returns always means the present test's
 * till.
 */
export function tillOfEachTest() {
  const till = {
    clock: 0,
    gateOpen: true,
    reachable: true,
    /** Connections to the merchant that are held and neither used nor given back. */
    connections: 0,
    onStoreLoss: 'deliver' as StoreLossPolicy,
    /**
     * Payments of which an operator was told that nobody is known to have bought here with them.
     */
    unclaimed: [] as string[],
    store: undefined as unknown as Store,
    ledger: undefined as unknown as PaymentLedger,
    peer: scriptedRail(),
    time: skippedTime(),
    terms: sampleTerms(),
    flushed: [] as EventDraft[],
    /** Payments of which an answer left without its mark. */
    unmarked: [] as string[],
    /** Leases that are held and not dropped. */
    held: new Set<string>(),
  };
  beforeEach(() => {
    till.clock = NOON_MS;
    till.store = openSqliteStore({
      path: ':memory:',
      limits: { eventsMaxLength: 1_000, receiptsMaxLength: 1_000 },
      now: () => till.clock,
    });
    till.ledger = till.store.ledger;
    till.peer = scriptedRail();
    till.time = skippedTime();
    till.gateOpen = true;
    till.reachable = true;
    till.connections = 0;
    till.onStoreLoss = 'deliver';
    till.unclaimed = [];
    till.flushed = [];
    till.unmarked = [];
    till.held = new Set();
    till.terms = freshTerms();
  });

  const leases = {
    hold: ({ payId }: PaymentRecord): Lease => {
      till.held.add(payId);
      return { drop: () => void till.held.delete(payId) };
    },
    releaseAll: async (): Promise<void> => undefined,
  };
  const journal = (): Journal => {
    const call = { requestId: till.terms.requestId, resourceId: till.terms.resourceId, adapter: 'http' } as const;
    return openJournal(call, { push: (event) => void till.flushed.push(event), withdraw: () => [] });
  };
  const reserveBackend = async (): Promise<HeldConnection | undefined> => {
    if (!till.reachable) return undefined;
    till.connections += 1;
    return {
      exchange: async () => {
        throw new Error('nothing is delivered here');
      },
      release: () => {
        till.connections -= 1;
      },
    };
  };
  const order = (changes: Partial<SettlementRequest> = {}): SettlementRequest => {
    const opened = journal();
    opened.record('resource.requested');
    return {
      terms: till.terms,
      refusal: undefined,
      left: new AbortController().signal,
      journal: opened,
      repeatable: true,
      backendTimeoutMs: 10_000,
      elapsedMs: () => 1,
      gateOpen: () => till.gateOpen,
      reserveBackend,
      ...changes,
    };
  };
  const settler = (through = till.ledger) => {
    const { peer, onStoreLoss, time } = till;
    const onUnclaimed = ({ payId }: { readonly payId: string }): void => void till.unclaimed.push(payId);
    return createSettler({ ledger: through, rail: peer.rail, leases, onStoreLoss, onUnclaimed, time });
  };
  const take = (
    changes?: Partial<SettlementRequest>,
    through = till.ledger,
    joined = false,
  ): Promise<SettlementResult> => settler(through).take(order(changes), joined);
  /** A sale that must be one. */
  const pay = async (changes?: Partial<SettlementRequest>): Promise<Paid> => {
    const sale = await take(changes);
    if (sale.kind !== 'paid') throw new Error(`expected a payment, got ${sale.kind}`);
    return sale;
  };
  const desk = (through = till.ledger): DeliveryRecorder =>
    createDeliveryRecorder(
      through,
      KEEP_ANSWER_MS,
      {
        unwritten: ({ err }) => {
          throw err;
        },
        unmarked: ({ payId }) => void till.unmarked.push(payId),
      },
      till.time,
    );
  const facts = ({ lease }: Pick<Paid, 'lease'>, more: Partial<DeliveryFacts> = {}): DeliveryFacts => ({
    requestId: till.terms.requestId,
    callId: till.terms.callId,
    backendStatus: 200,
    durationMs: 1,
    journal: journal(),
    lease,
    answer: undefined,
    ...more,
  });
  const later = (ms: number): void => {
    till.clock += ms;
  };
  const record = (): Promise<PaymentRecord | undefined> => till.ledger.read(till.terms.payId);
  const state = async (): Promise<string | undefined> => (await record())?.state;
  const types = async (): Promise<readonly string[]> =>
    (await till.store.feed.page({ limit: 100 })).events.map(({ type }) => type).toReversed();
  const receipts = async (): Promise<readonly Receipt[]> => (await till.store.receipts.page({ limit: 100 })).receipts;
  /** The ledger with some methods replaced. */
  const broken = (methods: Partial<PaymentLedger>): PaymentLedger => ({
    reserve: (command) => till.ledger.reserve(command),
    advance: (command) => till.ledger.advance(command),
    note: (command) => till.ledger.note(command),
    renew: (claim, leaseMs) => till.ledger.renew(claim, leaseMs),
    discard: (...command) => till.ledger.discard(...command),
    read: (payId) => till.ledger.read(payId),
    kept: (payId) => till.ledger.kept(payId),
    due: (limit) => till.ledger.due(limit),
    ...methods,
  });
  const silent = async (): Promise<never> => {
    throw new StoreError('gone');
  };
  return Object.assign(till, {
    ...{
      leases,
      journal,
      reserveBackend,
      order,
      settler,
      take,
      pay,
      desk,
      facts,
      later,
      record,
      state,
      types,
      receipts,
    },
    ...{ broken, silent },
  });
}

/** Terms of seven units that nobody has used before, valid from noon. */
export function freshTerms(): ReturnType<typeof sampleTerms> {
  const proof = { payload: { payload: {} }, signedBy: 'account' } as unknown as Proof;
  return {
    ...sampleTerms(),
    payId: randomBytes(32).toString('hex'),
    units: '7',
    validBefore: NOON_MS / 1_000 + VALID_FOR_S,
    proof: storedProof(proof, OFFER),
  };
}
