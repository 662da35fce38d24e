import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beforeEach } from 'node:test';
import type { HeldConnection } from '../../../src/backend/backend-exchange.ts';
import type { EventDraft } from '../../../src/events/event.ts';
import { type Journal, openJournal } from '../../../src/events/journal.ts';
import {
  createDeliveryRecorder,
  type DeliveryFacts,
  type DeliveryRecorder,
  type Undelivered,
} from '../../../src/payments/delivery/delivery-recorder.ts';
import type { KeptAnswer, PaymentLedger, PaymentRecord, PaymentState } from '../../../src/payments/ledger/ledger.ts';
import type { RailVerdict, Reading, Settlement } from '../../../src/payments/rail.ts';
import { LEASE_MS, type Lease } from '../../../src/payments/settlement/attempt.ts';
import { createUnpaidWork, type UnpaidWork } from '../../../src/payments/settlement/places.ts';
import { SafeToRechallenge } from '../../../src/payments/settlement/safe-to-rechallenge.ts';
import { createSettler, type SettlementParts, type Settler } from '../../../src/payments/settlement/settle.ts';
import type {
  Paid,
  SettlementRequest,
  SettlementResult,
  Worked,
  WorkFirst,
} from '../../../src/payments/settlement/settlement-request.ts';
import { storedProof } from '../../../src/payments/settlement/terms.ts';
import type { PaymentRail, PaymentRequirements, Proof } from '../../../src/payments/x402/wire/types.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import type { Store } from '../../../src/store/documents/store.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { openSqliteStore } from '../../../src/store/sqlite/open.ts';
import type { Time } from '../../../src/time/time.ts';
import { terms as sampleTerms } from '../ledger/samples.ts';
import { skippedTime } from './virtual-time.ts';

/** A transaction hash. */
export const HASH = `0x${'ab'.repeat(32)}`;
/** Paid, as the chain shows it. */
export const PAID = { kind: 'settled', evidence: 'logs', transaction: HASH } as const;
/** Never to be paid any more, as the chain shows it. */
export const EXPIRED = { kind: 'refused', reason: 'expired', evidence: 'expired' } as const;
/** The verdict on a nonce that was used before. */
export const SPENT = { kind: 'refused', reason: 'invalid_exact_evm_nonce_already_used', nonceSpent: true } as const;

type WriteAhead = Parameters<PaymentRail['settle']>[2];

/** What the rail was asked, in order. `amount` in base units. */
interface Asked {
  readonly what: 'verify' | 'settle' | 'reconcile';
  readonly amount: string;
  readonly sentBefore?: boolean;
  readonly knownTransaction?: string;
}

/**
 * A rail that a test scripts: the one peer that cannot be real here. At first it approves
 * and settles everything.
 */
function scriptedRail() {
  const asked: Asked[] = [];
  const script = {
    seesChain: true,
    verify: async (): Promise<RailVerdict> => ({ kind: 'valid' }),
    settle: async (_write: WriteAhead): Promise<Settlement> => PAID,
    reconcile: async (): Promise<Reading> => ({ kind: 'open' }),
    markOf: async (): Promise<string | undefined> => undefined,
    sentBack: async (): Promise<boolean> => false,
  };
  const rail: PaymentRail = {
    facilitator: 'local',
    seesChain: () => script.seesChain,
    verify: (_proof, { amount }) => {
      asked.push({ what: 'verify', amount });
      return script.verify();
    },
    settle: (_proof, { amount }, writeAhead, { transaction: _known, ...history } = { sentBefore: false }) => {
      asked.push({ what: 'settle', amount, ...history });
      return script.settle(writeAhead);
    },
    reconcile: (_proof, { amount }, { transaction: knownTransaction } = { sentBefore: false }) => {
      asked.push({ what: 'reconcile', amount, ...(knownTransaction === undefined ? {} : { knownTransaction }) });
      return script.reconcile();
    },
    markOf: () => script.markOf(),
    sentBack: () => script.sentBack(),
    check: async () => undefined,
  };
  return { rail, script, asked, names: () => asked.map(({ what }) => what) };
}

/** What the backend answers, unless a test scripts something else. */
export const ANSWER: KeptAnswer = {
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: new Uint8Array(Buffer.from('{"report":1}')),
};
/** It failed with 500. */
export const BROKEN: Worked = { kind: 'failed', failure: { status: 500, requestWritten: true } };
/** Its answer is too large to be kept. */
export const TOO_LARGE: Worked = {
  kind: 'failed',
  failure: { status: 0, reason: 'response_too_large', requestWritten: true },
};

/** A backend that answers before the money moves, as a test scripts it. At first it answers. */
function scriptedWork() {
  /** The payments it was called for, in order. */
  const called: string[] = [];
  const script = { answer: async (): Promise<Worked> => ({ kind: 'answer', answer: ANSWER }) };
  /** As the middleware calls it: over the held connection, and with its event. */
  const callIn =
    (journal: Journal): WorkFirst['call'] =>
    async ({ payId }, held) => {
      called.push(payId);
      const worked = await script.answer();
      held.release();
      if (worked.kind === 'answer') journal.record('backend.called', { status: 'ok' });
      return worked;
    };
  return { script, called, callIn };
}

/** When every test begins, milliseconds of the store's clock. */
export const NOON_MS = 1_800_000_000_000;
/** How long a token opens a delivered answer, milliseconds. */
export const KEEP_ANSWER_MS = 60_000;
/** A delivery that failed after the request was written, and that may be repeated. */
export const FAILED = { failure: { code: 'backend_status_500' }, requestWritten: true, repeatable: true } as const;
/** How long a sample proof is valid from the beginning of a test, seconds. */
const VALID_FOR_S = 120;

type UnpaidAnswer = Parameters<NonNullable<SettlementParts['onUnpaid']>>[0];

const UNPAID_LIMITS = { perResource: 8, perNetwork: 8, all: 8, windowMs: 60_000 };

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
 * A settlement for each test: a real ledger on a clock that the test moves, and a scripted rail.
 * Call it at the top of a `describe`; what it returns always belongs to the present test.
 */
export function worldOfEachTest() {
  const fresh = () => {
    return {
      clock: NOON_MS,
      gateOpen: true,
      reachable: true,
      /** Connections to the backend that are held and neither used nor given back. */
      connections: 0,
      onStoreLoss: 'deliver' as 'deliver' | 'refuse',
      payToExclusive: true,
      offered: true,
      /** Lost payments that no known buyer made: the operator gets a warning of each. */
      unclaimed: [] as string[],
      /** What the settler reported as worked and not paid. */
      unpaid: [] as UnpaidAnswer[],
      /** Limits of unpaid work; the budget of a test begins empty. */
      unpaidLimits: UNPAID_LIMITS,
      /** The backend of calls that are settled after it. */
      backend: scriptedWork(),
      peer: scriptedRail(),
      time: skippedTime(),
      terms: freshTerms(),
      flushed: [] as EventDraft[],
      /** Payments whose answer left without its mark. */
      unmarked: [] as string[],
      /** Leases that are held and not dropped. */
      held: new Set<string>(),
    };
  };
  const world = {} as ReturnType<typeof fresh> & { store: Store; ledger: PaymentLedger; unpaidWork: UnpaidWork };
  beforeEach(() => {
    Object.assign(world, fresh());
    world.store = openSqliteStore({
      path: ':memory:',
      limits: { eventsMaxLength: 1_000, receiptsMaxLength: 1_000 },
      now: () => world.clock,
    });
    world.ledger = world.store.ledger;
    world.unpaidWork = createUnpaidWork(() => world.unpaidLimits, world.time);
  });

  const leases = {
    hold: ({ payId }: PaymentRecord): Lease => {
      world.held.add(payId);
      return { drop: () => void world.held.delete(payId) };
    },
    releaseAll: async (): Promise<void> => undefined,
  };
  const journal = (): Journal => {
    const { requestId, callId, resourceId } = world.terms;
    return openJournal(
      { requestId, callId, resourceId, adapter: 'http' },
      { push: (event) => void world.flushed.push(event), withdraw: () => [] },
    );
  };
  const reserveBackend = async (): Promise<HeldConnection | undefined> => {
    if (!world.reachable) return undefined;
    world.connections += 1;
    return {
      exchange: async () => {
        throw new Error('nothing is delivered here');
      },
      release: () => {
        world.connections -= 1;
      },
    };
  };
  const requestWith = (changes: Partial<SettlementRequest> = {}): SettlementRequest => {
    const opened = journal();
    opened.record('resource.requested');
    return {
      terms: world.terms,
      refusal: undefined,
      left: new AbortController().signal,
      journal: opened,
      repeatable: true,
      backendTimeoutMs: 10_000,
      elapsedMs: () => 1,
      gateOpen: () => world.gateOpen,
      reserveBackend,
      ...changes,
    };
  };
  const settlers = new WeakMap<PaymentLedger, { readonly time: Time; readonly settler: Settler }>();
  /** The settler of a process over a ledger, which remembers the proofs that it has seen. */
  const settler = (through = world.ledger): Settler => {
    const known = settlers.get(through);
    if (known?.time === world.time) return known.settler;
    const opened = createSettler({
      ledger: through,
      rail: world.peer.rail,
      leases,
      time: world.time,
      unpaidWork: { enter: (work) => world.unpaidWork.enter(work), paid: (payId) => world.unpaidWork.paid(payId) },
      // Those of another asset are the opposite.
      payeeRules: ({ asset }) =>
        asset === world.terms.asset
          ? world
          : { payToExclusive: !world.payToExclusive, onStoreLoss: 'refuse', offered: true },
      onUnclaimed: ({ payId }) => void world.unclaimed.push(payId),
      onUnpaid: (facts) => void world.unpaid.push(facts),
    });
    settlers.set(through, { time: world.time, settler: opened });
    return opened;
  };
  const settleOnce = (
    changes?: Partial<SettlementRequest>,
    through = world.ledger,
    joined = false,
  ): Promise<SettlementResult> => settler(through).settle(requestWith(changes), joined);
  /** One attempt of a call that is settled after the backend answered. `work`: what is special. */
  const settleAfter = (
    { work, ...changes }: Partial<Omit<SettlementRequest, 'work'>> & { readonly work?: Partial<WorkFirst> } = {},
    through = world.ledger,
  ): Promise<SettlementResult> => {
    const request = requestWith(changes);
    const terms = { ...request.terms, settle: 'after' } as const;
    const call = world.backend.callIn(request.journal);
    return settler(through).settle({
      ...{ ...request, terms },
      work: { network: 'network', leastSeconds: 80, answerOf: undefined, call, ...work },
    });
  };
  /** One attempt that must end with a payment. */
  const pay = async (changes?: Partial<SettlementRequest>): Promise<Paid> => {
    const result = await settleOnce(changes);
    if (result.kind !== 'paid') throw new Error(`expected a payment, got ${result.kind}`);
    return result;
  };
  const recorder = (through = world.ledger): DeliveryRecorder =>
    createDeliveryRecorder(
      through,
      () => KEEP_ANSWER_MS,
      {
        unwritten: ({ err }) => {
          throw err;
        },
        unmarked: ({ payId }) => void world.unmarked.push(payId),
      },
      world.time,
    );
  const facts = ({ lease }: Pick<Paid, 'lease'>, more: Partial<DeliveryFacts> = {}): DeliveryFacts => ({
    requestId: world.terms.requestId,
    callId: world.terms.callId,
    backendStatus: 200,
    durationMs: 1,
    journal: journal(),
    lease,
    answer: undefined,
    ...more,
  });
  const deliver = ({ record: paid, lease }: Paid, more?: Partial<DeliveryFacts>): Promise<void> =>
    recorder().delivered(paid, facts({ lease }, more));
  const failDelivery = (
    { record: paid, lease }: Pick<Paid, 'record' | 'lease'>,
    more: Partial<DeliveryFacts & Undelivered> = {},
  ): Promise<void> => recorder().undelivered(paid, { ...facts({ lease }), ...FAILED, ...more });
  const later = (ms: number): void => {
    world.clock += ms;
  };
  const record = (): Promise<PaymentRecord | undefined> => world.ledger.read(world.terms.payId);
  const state = async (): Promise<string | undefined> => (await record())?.state;
  const types = async (): Promise<readonly string[]> =>
    (await world.store.feed.page({ limit: 100 })).events.map(({ type }) => type).toReversed();
  const countOf = async (type: string): Promise<number> => (await types()).filter((one) => one === type).length;
  const flushedTypes = (): readonly string[] => world.flushed.map(({ type }) => type);
  const receipts = async (): Promise<readonly Receipt[]> => (await world.store.receipts.page({ limit: 100 })).receipts;
  /** The ledger with some methods replaced. */
  const broken = (methods: Partial<PaymentLedger>): PaymentLedger => ({ ...world.ledger, ...methods });
  /** The ledger with the change to one state replaced. */
  const brokenAt = (to: PaymentState, advance: PaymentLedger['advance']): PaymentLedger =>
    broken({ advance: (command) => (command.to === to ? advance(command) : world.ledger.advance(command)) });
  /** From now on the gate closes while the backend works, so that its answer waits unpaid. */
  const closesWhileItWorks = (): void => {
    world.backend.script.answer = async () => {
      world.gateOpen = false;
      return { kind: 'answer', answer: ANSWER };
    };
  };
  /** An attempt reserves and dies, and its lease ends. */
  const diesReserved = async (terms = world.terms): Promise<void> => {
    await world.ledger.reserve({ terms, owner: 'dead', leaseMs: LEASE_MS });
    later(LEASE_MS);
  };
  const silent = async (): Promise<never> => {
    throw new StoreError('gone');
  };
  /** The store answers that it certainly wrote nothing. */
  const away = async (): Promise<never> => {
    throw new StoreError(new Error('no connection'), false);
  };
  return Object.assign(world, {
    ...{ leases, journal, reserveBackend, requestWith, settler, settleOnce, settleAfter, pay },
    ...{ recorder, facts, deliver, failDelivery, later, record, state, broken, brokenAt, silent, away },
    ...{ closesWhileItWorks, diesReserved },
    ...{ types, countOf, flushedTypes, receipts },
  });
}

/** What a 402 would state. */
export function refusalIn(result: SettlementResult): unknown {
  assert.ok(result.kind === 'refused', `${result.kind} is no refusal`);
  assert.ok(SafeToRechallenge.is(result.owed));
  const { reason, phase, recorded } = result.owed;
  return { reason, phase, recorded };
}

/** Fresh terms of seven units, valid from noon. */
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
