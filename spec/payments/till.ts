import { randomBytes } from 'node:crypto';
import { beforeEach } from 'node:test';
import type { EventDraft } from '../../src/events/event.ts';
import { openJournal } from '../../src/events/journal.ts';
import { createCashier } from '../../src/payments/cashier.ts';
import type { PaymentLedger } from '../../src/payments/ledger/ledger.ts';
import { storedProof } from '../../src/payments/recall.ts';
import type { Order, Sale } from '../../src/payments/sale.ts';
import type { PaymentRail, Proof, RailVerdict, Reading, Settlement } from '../../src/payments/x402/rail.ts';
import type { PaymentRequirements } from '../../src/payments/x402/wire.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { type Store, StoreError } from '../../src/store/store.ts';
import { terms as sampleTerms } from './ledger/samples.ts';

/** A transaction hash. */
export const HASH = `0x${'ab'.repeat(32)}`;
/** An offer of seven units. */
export const OFFER = {
  scheme: 'exact',
  network: 'eip155:1',
  asset: '0xa',
  payTo: '0xb',
  amount: '7',
  maxTimeoutSeconds: 120,
  extra: {},
};

/** What the rail was asked, in order. */
interface Asked {
  readonly what: 'verify' | 'settle' | 'reconcile';
  readonly amount: string;
  readonly sentBefore?: boolean;
}

/** A rail that says what a test wants: the one peer that cannot be real here. */
function scriptedRail() {
  const asked: Asked[] = [];
  const script = {
    seesChain: true,
    verify: async (): Promise<RailVerdict> => ({ kind: 'valid' }),
    settle: async (_write: (transaction: { hash: string; raw: string }) => Promise<void>): Promise<Settlement> => ({
      kind: 'settled',
      transaction: HASH,
    }),
    reconcile: async (): Promise<Reading> => ({ kind: 'open' }),
  };
  const rail: PaymentRail = {
    facilitator: 'local',
    get seesChain() {
      return script.seesChain;
    },
    verify: (_proof, { amount }) => {
      asked.push({ what: 'verify', amount });
      return script.verify();
    },
    settle: (_proof, { amount }, writeAhead, history) => {
      asked.push({ what: 'settle', amount, ...(history === undefined ? {} : history) });
      return script.settle(writeAhead);
    },
    reconcile: (_proof, { amount }) => {
      asked.push({ what: 'reconcile', amount });
      return script.reconcile();
    },
    check: async () => undefined,
  };
  return { rail, script, asked, names: () => asked.map(({ what }) => what) };
}

/**
 * A till for each test: a real ledger on a clock that the test moves, and a rail that says what the test wants. Call it at the top of
 * a `describe`; what it returns always means the present test's till.
 */
export function tillOfEachTest() {
  const till = {
    clock: 0,
    gateOpen: true,
    store: undefined as unknown as Store,
    ledger: undefined as unknown as PaymentLedger,
    peer: scriptedRail(),
    terms: sampleTerms(),
    flushed: [] as EventDraft[],
  };
  beforeEach(() => {
    till.clock = 1_800_000_000_000;
    till.store = openSqliteStore({
      path: ':memory:',
      limits: { eventsMaxLength: 1_000, receiptsMaxLength: 1_000 },
      now: () => till.clock,
    });
    till.ledger = till.store.ledger;
    till.peer = scriptedRail();
    till.gateOpen = true;
    till.flushed = [];
    const proof = { payload: { payload: {} }, signedBy: 'account' } as unknown as Proof;
    till.terms = { ...sampleTerms(), payId: randomBytes(32).toString('hex'), units: '7', proof: storedProof(proof) };
  });

  const order = (changes: Partial<Order> = {}): Order => {
    const call = { requestId: till.terms.requestId, resourceId: till.terms.resourceId, adapter: 'http' } as const;
    const journal = openJournal(call, { push: (event) => void till.flushed.push(event), withdraw: () => [] });
    journal.record('resource.requested');
    return {
      terms: till.terms,
      offer: OFFER as PaymentRequirements,
      refusal: undefined,
      journal,
      repeatable: true,
      backendTimeoutMs: 10_000,
      elapsedMs: () => 1,
      gateOpen: () => till.gateOpen,
      ...changes,
    };
  };
  const take = (changes?: Partial<Order>, through = till.ledger): Promise<Sale> =>
    createCashier(through, till.peer.rail).take(order(changes));
  const later = (ms: number): void => {
    till.clock += ms;
  };
  const state = async (): Promise<string | undefined> => (await till.ledger.read(till.terms.payId))?.state;
  const types = async (): Promise<readonly string[]> =>
    (await till.store.feed.page({ limit: 100 })).events.map(({ type }) => type).toReversed();
  /** The ledger with some methods replaced. */
  const broken = (methods: Partial<PaymentLedger>): PaymentLedger => ({
    reserve: (command) => till.ledger.reserve(command),
    advance: (command) => till.ledger.advance(command),
    note: (...command) => till.ledger.note(...command),
    discard: (...command) => till.ledger.discard(...command),
    release: (command) => till.ledger.release(command),
    read: (payId) => till.ledger.read(payId),
    ...methods,
  });
  const silent = async (): Promise<never> => {
    throw new StoreError('gone');
  };
  return Object.assign(till, { order, take, later, state, types, broken, silent });
}
