import type { ReserveBackend } from '../../backend/types.ts';
import type { Journal } from '../../events/journal.ts';
import { REAL_TIME, type Time } from '../../time/time.ts';
import type { PaymentLedger, PaymentRecord } from '../ledger/ledger.ts';
import { DELIVERING_STATES } from '../ledger/transitions.ts';
import { BACKGROUND_TRIES, LONGEST_WAIT_MS, lookAgainMs } from './patience.ts';
import { forget, leaveToBuyer, leaveToOperator, neverDecided, owesRefund, refund, wait } from './recovery-actions.ts';
import type { Settler } from './settle.ts';
import type { Paid, SettlementRequest } from './settlement-request.ts';

/** Between two looks at the work list, milliseconds; random within, so that the replicas do not meet (CONTRACT 4.3). */
const LOOK_EVERY_MS = { from: 300, to: 600 } as const;
/** Most records of one look. */
const BATCH = 64;
/** Records worked on at the same time, by what they wait for: a merchant that hangs must not hold settlements up. */
const AT_ONCE = { settlement: 8, delivery: 4 } as const;

/** What a reconciler works with. */
interface ReconcilerParts {
  readonly ledger: PaymentLedger;
  readonly settler: Settler;
  /** A call's journal, to go on where the lost attempt stopped. */
  readonly journalOf: (record: PaymentRecord) => Journal;
  /** Whether the merchant may be sent this record's request again, and for how long it may take, milliseconds. */
  readonly deliverable: (record: PaymentRecord) => { readonly repeatable: boolean; readonly timeoutMs: number };
  /** As of an order. */
  readonly reserveBackend: ReserveBackend;
  /** Delivers what is paid and has no buyer waiting, over the connection it holds. Ends the lease. */
  readonly deliver: (paid: Paid, journal: Journal) => Promise<void>;
  readonly gateOpen: () => boolean;
  /** Told what went wrong with one record; it will be looked at again. */
  readonly warn: (facts: { readonly payId?: string; readonly err: unknown }) => void;
  readonly time?: Time;
  /** 0 to below 1. */
  readonly random?: () => number;
}

/** Finishes what attempts left behind: ended leases, uncertain settlements, undelivered calls that may be repeated, refunds due. */
export interface Reconciler {
  /** One look at the work list; resolves when what it found is done. Never rejects. */
  round(): Promise<void>;
  /** Looks again and again until `stop`. */
  start(): void;
  /** No new look; resolves when what runs is done, or after `atMostMs`. */
  stop(atMostMs: number): Promise<void>;
}

export function createReconciler(parts: ReconcilerParts): Reconciler {
  const { time = REAL_TIME, random = Math.random } = parts;
  const active = new Map<string, { readonly lane: Lane; readonly work: Promise<void> }>();
  let stopped = false;
  let silent = false;

  const look = async (): Promise<void> => {
    if (!parts.gateOpen() || !LANES.some(hasRoom)) return;
    try {
      for (const record of await parts.ledger.due(BATCH))
        if (!active.has(record.payId) && hasRoom(laneOf(record))) begin(record);
      silent = false;
    } catch (err) {
      // A store that is away is worth one line, not two a second.
      if (!silent) parts.warn({ err });
      silent = true;
    }
  };
  const hasRoom = (lane: Lane): boolean =>
    [...active.values()].filter((one) => one.lane === lane).length < AT_ONCE[lane];
  const begin = (record: PaymentRecord): void => {
    const { payId } = record;
    const work = finish(parts, record)
      .catch((err: unknown) => parts.warn({ payId, err }))
      .finally(() => active.delete(payId));
    active.set(payId, { lane: laneOf(record), work });
  };
  const done = async (): Promise<void> => void (await Promise.all([...active.values()].map(({ work }) => work)));
  const loop = async (): Promise<void> => {
    while (!stopped) {
      // One settlement that hangs must not keep the others waiting: what a look found is not awaited here.
      await look();
      await time.sleep(LOOK_EVERY_MS.from + random() * (LOOK_EVERY_MS.to - LOOK_EVERY_MS.from));
    }
  };
  return {
    async round() {
      await look();
      await done();
    },
    start: () => void loop(),
    async stop(atMostMs) {
      stopped = true;
      await Promise.race([done(), time.sleep(atMostMs)]);
    },
  };
}

type Lane = keyof typeof AT_ONCE;
const LANES = Object.keys(AT_ONCE) as Lane[];

function laneOf({ state }: PaymentRecord): Lane {
  return DELIVERING_STATES.includes(state) ? 'delivery' : 'settlement';
}

/** Goes on with one record as its buyer would, through the same reservation: whoever is first works on it. */
async function finish(parts: ReconcilerParts, record: PaymentRecord): Promise<void> {
  const { ledger, settler, deliver, journalOf } = parts;
  if (record.state === 'reserved') return forget(ledger, record);
  if (owesRefund(record)) return refund(ledger, record);
  if (neverDecided(record)) return leaveToOperator(ledger, record, parts.warn);
  if (record.state === 'undelivered' && record.tries >= BACKGROUND_TRIES) return leaveToBuyer(ledger, record);
  const journal = journalOf(record);
  const sale = await settler.take(orderFrom(parts, record, journal));
  if (sale.kind === 'uncertain' && lookAgainMs(sale.record) === LONGEST_WAIT_MS)
    parts.warn({ payId: record.payId, err: sale.cause });
  if (sale.kind !== 'paid') return;
  try {
    if (sale.kept === undefined) await deliver(sale, journal);
    else await wait(ledger, sale.record);
  } finally {
    sale.lease.drop();
  }
}

function orderFrom(
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
