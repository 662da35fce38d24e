/**
 * Finishes what attempts left behind: ended leases, uncertain settlements, undelivered calls that
 * may be repeated, refunds due. It uses the same reservations as the calls do.
 */

import { randomUUID } from 'node:crypto';
import type { ReserveBackend } from '../../backend/backend-exchange.ts';
import type { Journal } from '../../events/journal.ts';
import { REAL_TIME, type Time } from '../../time/time.ts';
import type { PaymentLedger, PaymentRecord } from '../ledger/ledger.ts';
import { receiptOf, uncertainReceipt } from '../ledger/payment-receipt.ts';
import { DELIVERING_STATES, RETRY_WINDOW_MS } from '../ledger/table.ts';
import {
  BACKGROUND_TRIES,
  fencingToken,
  LEASE_MS,
  LONGEST_LEASE_MS,
  LONGEST_WAIT_MS,
  lookAgainMs,
  MOST_TRIES,
  SHORTEST_WINDOW_MS,
  windowLeftMs,
} from './attempt.ts';
import type { Settler } from './settle.ts';
import type { Paid, SettlementRequest } from './settlement-request.ts';

/** Between two looks at the work list, milliseconds; random, to spread replicas (contract 4.3). */
const LOOK_EVERY_MS = { from: 300, to: 600 } as const;
/** Most records of one look, and of one after looks at records that all had to wait. */
const BATCH = 64;
const MOST_DUE = 1_024;
/** Records worked on at a time: a slow backend must not delay settlements. */
const AT_ONCE = { settlement: 8, delivery: 4 } as const;
/** `reason` of a record that waits for the operator's decision. */
const UNDECIDED = 'undecided';

/** What a reconciler works with. */
interface ReconcilerParts {
  readonly ledger: PaymentLedger;
  readonly settler: Settler;
  /** A call's journal, to go on where the lost attempt stopped. */
  readonly journalOf: (record: PaymentRecord) => Journal;
  /** Whether the purchase was made at this service; one of another service is left alone. */
  readonly isOurs?: (record: PaymentRecord) => boolean;
  /** Whether the backend may be sent this record's request again, and its deadline. */
  readonly deliverable: (record: PaymentRecord) => { readonly repeatable: boolean; readonly timeoutMs: number };
  /** As in `SettlementRequest`. */
  readonly reserveBackend: ReserveBackend;
  /** Delivers a paid call without a waiting buyer, over its connection. Ends the lease. */
  readonly deliver: (paid: Paid, journal: Journal) => Promise<void>;
  readonly gateOpen: () => boolean;
  /**
   * Payments that attempts of this process work on. A busy event loop renews leases late; such an
   * attempt is not dead, and to take its record over would answer its buyer 409.
   */
  readonly running?: () => ReadonlySet<string>;
  /** Counts work that a drain waits for; the result notes its end. */
  readonly begin?: () => () => void;
  /** Gets each failure. The record is looked at again. */
  readonly warn: (facts: { readonly payId?: string; readonly err: unknown }) => void;
  readonly time?: Time;
  /** 0 to below 1. */
  readonly random?: () => number;
}

export type Reconciler = ReturnType<typeof createReconciler>;

export function createReconciler(parts: ReconcilerParts) {
  const { time = REAL_TIME, random = Math.random } = parts;
  const active = new Map<string, { readonly record: PaymentRecord; readonly work: Promise<void> }>();
  let stopped = false;
  let silent = false;
  let most = BATCH;

  const look = async (): Promise<void> => {
    if (!parts.gateOpen() || active.size >= BATCH) return;
    try {
      const due = await parts.ledger.due(most);
      const running = parts.running?.();
      const before = active.size;
      for (const record of due)
        if (running?.has(record.payId) !== true && !active.has(record.payId) && hasRoom(record)) begin(record);
      // Records of a network without room may stand before those of another one.
      most = due.length === most && active.size === before ? Math.min(2 * most, MOST_DUE) : BATCH;
      silent = false;
    } catch (err) {
      // One warning for a store that is away, not two a second.
      if (!silent) parts.warn({ err });
      silent = true;
    }
  };
  /** Each network has its own room: one that is silent delays no other. */
  const hasRoom = (record: PaymentRecord): boolean => {
    const lane = laneOf(record);
    const isBeside = (one: PaymentRecord): boolean => laneOf(one) === lane && one.network === record.network;
    return [...active.values()].filter((one) => isBeside(one.record)).length < AT_ONCE[lane];
  };
  const begin = (record: PaymentRecord): void => {
    const { payId } = record;
    const ended = parts.begin?.();
    const work = finish(parts, record)
      .catch((err: unknown) => parts.warn({ payId, err }))
      .finally(() => {
        active.delete(payId);
        ended?.();
      });
    active.set(payId, { record, work });
  };
  const allDone = async (): Promise<void> => void (await Promise.all([...active.values()].map(({ work }) => work)));
  const loop = async (): Promise<void> => {
    while (!stopped) {
      // The work of a look is not awaited here: one slow settlement must not delay the others.
      await look();
      await time.sleep(LOOK_EVERY_MS.from + random() * (LOOK_EVERY_MS.to - LOOK_EVERY_MS.from));
    }
  };
  return {
    /** Looks at the work list once; resolves when all running work is done. Never rejects. */
    async round(): Promise<void> {
      await look();
      await allDone();
    },
    /** Looks again and again until `stop`. */
    start: (): void => void loop(),
    /** Ends the looks; resolves when all running work is done, or after `atMostMs`. */
    async stop(atMostMs: number): Promise<void> {
      stopped = true;
      await Promise.race([allDone(), time.sleep(atMostMs)]);
    },
  };
}

/** The commands that take a record over and move it on. */
type Taking = Pick<PaymentLedger, 'reserve' | 'note' | 'advance'>;

type Lane = keyof typeof AT_ONCE;

function laneOf({ state }: PaymentRecord): Lane {
  return DELIVERING_STATES.includes(state) ? 'delivery' : 'settlement';
}

/** Goes on with one record as its buyer would, through the same reservation. */
async function finish(parts: ReconcilerParts, record: PaymentRecord): Promise<void> {
  const { ledger, settler, deliver, journalOf, isOurs = () => true } = parts;
  if (!isOurs(record)) return leaveToOthers(ledger, record, parts.warn);
  if (record.state === 'reserved') {
    // Nothing was sent: the buyer can bring the same proof again.
    const held = await takeOver(ledger, record);
    return void (held && (await ledger.discard(fencingToken(held), [])));
  }
  if (owesRefund(record)) return void (await endCollecting(ledger, record));
  if (neverDecided(record)) return leaveToOperator(ledger, record, parts.warn);
  if (record.state === 'undelivered' && record.tries >= BACKGROUND_TRIES) {
    // The backend failed too often for more tries in the background.
    const held = await takeOver(ledger, record);
    return void (held && (await wait(ledger, held)));
  }
  const journal = journalOf(record);
  const result = await settler.settle(requestFrom(parts, record, journal));
  if (result.kind === 'uncertain' && lookAgainMs(result.record) === LONGEST_WAIT_MS)
    parts.warn({ payId: record.payId, err: result.cause });
  if (result.kind !== 'paid') return;
  try {
    // `settled`: the answer was there before the money moved, and no write left it to its buyer.
    if (result.kept === undefined || result.record.state === 'settled') await deliver(result, journal);
    else await wait(ledger, result.record);
  } finally {
    result.lease.drop();
  }
}

function requestFrom(
  { deliverable, gateOpen, reserveBackend }: ReconcilerParts,
  record: PaymentRecord,
  journal: Journal,
): SettlementRequest {
  const { repeatable, timeoutMs } = deliverable(record);
  const began = performance.now();
  return {
    terms: record,
    refusal: undefined,
    left: undefined,
    journal,
    repeatable,
    backendTimeoutMs: timeoutMs,
    elapsedMs: () => Math.round(performance.now() - began),
    gateOpen,
    reserveBackend,
  };
}

/** Puts a record off until the buyer comes or the window ends. */
async function wait(ledger: PaymentLedger, held: PaymentRecord): Promise<void> {
  await ledger.note({ ...fencingToken(held), leaseMs: 0, againMs: windowLeftMs(held), ...uncertainReceipt(held) });
}

/** Defers and reports a payment of another service in the same store. */
async function leaveToOthers(
  ledger: PaymentLedger,
  record: PaymentRecord,
  warn: ReconcilerParts['warn'],
): Promise<void> {
  const held = await takeOver(ledger, record);
  if (held === undefined) return;
  await ledger.note({ ...fencingToken(held), leaseMs: 0, againMs: LONGEST_WAIT_MS });
  warn({
    payId: record.payId,
    err: new Error('it was bought at another service: each needs a merchant.id of its own'),
  });
}

/**
 * Ends the time in which the buyer can collect: the payment is due for a refund. Undefined where an
 * attempt works on the record, or where it is in another state by now.
 */
export async function endCollecting(ledger: Taking, record: PaymentRecord): Promise<PaymentRecord | undefined> {
  const held = await takeOver(ledger, record);
  if (held === undefined) return undefined;
  const at = new Date();
  const receipt = receiptOf(held, {
    settledAt: new Date(held.settledAt ?? at),
    at,
    durationMs: 0,
    delivery: undefined,
    refundDue: true,
  });
  const ended = await ledger.advance({ ...fencingToken(held), to: 'refundDue', leaseMs: 0, receipt, events: [] });
  return ended.kind === 'done' ? ended.record : undefined;
}

/** Whether a settlement is open a day after its authorization ended: nothing will decide it. */
function neverDecided({ state, dueAt, validBefore }: PaymentRecord): boolean {
  return state === 'settling' && dueAt >= validBefore * 1_000 + RETRY_WINDOW_MS;
}

/**
 * Leaves a settlement to the operator, whose list shows it: it may have been paid, so the gateway
 * neither refunds it nor delivers for it.
 */
export async function leaveToOperator(
  ledger: PaymentLedger,
  record: PaymentRecord,
  warn: (facts: { readonly payId: string; readonly err: unknown }) => void,
): Promise<void> {
  const held = await takeOver(ledger, record);
  if (held === undefined) return;
  const at = new Date();
  const receipt = receiptOf(held, { settledAt: at, at, durationMs: 0, delivery: undefined, unknown: true });
  const facts = { reason: UNDECIDED };
  await ledger.advance({ ...fencingToken(held), to: 'unresolved', leaseMs: 0, facts, receipt, events: [] });
  const how = `decide it: acg reconcile --decide ${record.payId} paid|unpaid|unclaimed`;
  warn({ payId: record.payId, err: new Error(`nothing could tell whether a payment was made; ${how}`) });
}

/** Whether a refund is due. A record is found when it is due: the clock is at least `dueAt`. */
function owesRefund({ state, settledAt, dueAt, tries, keyDigest, tokenDigest }: PaymentRecord): boolean {
  const since = dueAt - (settledAt ?? dueAt);
  // Without a secret an onlooker may have made the tries: they do not shorten the buyer's time.
  const guarded = keyDigest !== undefined || tokenDigest !== undefined;
  const hopeless = guarded && tries >= MOST_TRIES && since >= SHORTEST_WINDOW_MS;
  return state === 'undelivered' && (since >= RETRY_WINDOW_MS || hopeless);
}

/**
 * Takes over a record that is still in the state in which it was found. One that moved on
 * meanwhile, or was lost and began anew as a reservation, is given back at once, so that its lease
 * delays no other attempt.
 */
async function takeOver(ledger: Taking, terms: PaymentRecord): Promise<PaymentRecord | undefined> {
  const reservation = await ledger.reserve({
    terms,
    owner: randomUUID(),
    leaseMs: LEASE_MS,
    longestMs: LONGEST_LEASE_MS,
  });
  if (reservation.kind !== 'granted') return undefined;
  const { record } = reservation;
  if (record.state === terms.state) return record;
  await ledger.note({ ...fencingToken(record), leaseMs: 0 });
  return undefined;
}
