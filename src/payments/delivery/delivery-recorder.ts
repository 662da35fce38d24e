/**
 * Writes down how the delivery of a paid call ended: state, receipt, events and kept answer in one
 * write. The last writes of a payment; `deliver` and fetch-answer.ts use it.
 */

import { randomUUID } from 'node:crypto';
import type { Journal } from '../../events/journal.ts';
import type { ReceiptDigests } from '../../receipts/receipt.ts';
import { REAL_TIME, type Time } from '../../time/time.ts';
import {
  type Advance,
  type Advanced,
  type KeptAnswer,
  MAX_KEPT_BYTES,
  type PaymentFacts,
  type PaymentLedger,
  type PaymentRecord,
  type PaymentState,
} from '../ledger/ledger.ts';
import {
  ANSWER_KEPT,
  type Delivery,
  type DeliveryFailure,
  REQUEST_MAY_BE_WRITTEN,
  REQUEST_NOT_WRITTEN,
  receiptOf,
  type Sent,
} from '../ledger/payment-receipt.ts';
import { DELIVERING_STATES, RETRY_WINDOW_MS } from '../ledger/table.ts';
import {
  deliverAgainMs,
  fencingToken,
  LEASE_MS,
  type Lease,
  LONGEST_LEASE_MS,
  PATIENT_PAUSES_MS,
  passed,
  pausesFor,
  persist,
  type Unwritten,
  windowLeftMs,
} from '../settlement/attempt.ts';

/** Looks at a record that another attempt has, and the pause between them, milliseconds. */
const LOOKS = 15;
const PAUSE_MS = 1_000;

/** A client that polls tasks needs this long to ask for a lost answer, ms (contract 4.5). */
const A2A_KEEP_MS = 10 * 60 * 1_000;

/** States of a payment that can be collected no more. */
const SENT_BACK: ReadonlySet<PaymentState> = new Set(['refundDue', 'refunding', 'refunded']);

/** Pause between tries to write the mark that bytes leave, milliseconds. */
const MARK_PAUSE_MS = 100;
/**
 * How long the first byte waits for the mark, milliseconds. Without the mark a process that dies
 * would leave a receipt of an undelivered answer, and the buyer would have answer and refund. A
 * store that fails over is back within this time; one that stays away longer must not keep the
 * answer from a buyer who has paid.
 */
const MARK_WAIT_MS = 20_000;
/** How often the first byte waits for another attempt that took the record over meanwhile. */
const TAKEOVERS = 5;
/** How long the mark is tried after the first byte left without it, milliseconds. */
const LATE_MARK_MS = 60_000;

export type DeliveryRecorder = ReturnType<typeof createDeliveryRecorder>;

export interface Undelivered {
  /** Undefined when only the buyer is not there. */
  readonly failure: DeliveryFailure | undefined;
  /** False only when it is certain that no byte of the request reached the backend. */
  readonly requestWritten: boolean;
  /** Whether the backend may be sent the request again. */
  readonly repeatable: boolean;
  /** The part of the answer that left; absent where none was to leave, or where it is not known. */
  readonly sent?: Sent | undefined;
}

export interface DeliveryFacts {
  /** The request that is being answered; differs from the record's when a later one collects. */
  readonly requestId: string;
  /** The call that is being answered. */
  readonly callId: string;
  /** 0 when no answer came. */
  readonly backendStatus: number;
  readonly durationMs: number;
  /** Its waiting events go with the write. */
  readonly journal: Journal;
  /** Ends with the write. */
  readonly lease: Lease;
  /** The backend's whole answer, when it came and is small enough to keep. */
  readonly answer: KeptAnswer | undefined;
  /** The store keeps the answer already. */
  readonly keptBefore?: boolean;
  /** Digests of the input and of the delivered answer; absent where nothing is signed. */
  readonly digests?: ReceiptDigests | undefined;
}

/** A delivery whose bytes may leave: the record as this attempt holds it, and the mark's write. */
interface Begun {
  readonly record: PaymentRecord;
  readonly mark: Promise<unknown>;
  /** An earlier attempt had the mark written. */
  readonly earlier: boolean;
  /** Number of the record's sendings, this one included. */
  readonly sendings: number;
}

/** Gets each write that the store did not take, as when it was away for too long. */
export interface DeliveryWarnings {
  /** How a delivery ended: its lease will end, and the record stays collectable. */
  unwritten(facts: { readonly payId: string; readonly err: unknown }): void;
  /** An answer leaves without its mark. */
  unmarked(facts: { readonly payId: string; readonly err: unknown }): void;
}

/** `keepAnswerMs`: how long a token opens its delivered answer, asked for at each delivery. */
export function createDeliveryRecorder(
  ledger: PaymentLedger,
  keepAnswerMs: () => number,
  warn: DeliveryWarnings,
  time: Time = REAL_TIME,
) {
  const begun = new WeakMap<PaymentRecord, Begun>();
  /**
   * The facts of a failed delivery about its own mark, which stays unless nothing left. The mark of
   * an earlier attempt stays in any case.
   */
  const markEnd = async (record: PaymentRecord, sent: Sent | undefined): Promise<PaymentFacts> => {
    const own = begun.get(record);
    // Awaited first: a repetition of the mark must not come after the write of the end.
    await own?.mark;
    if (own === undefined) return {};
    const { earlier, sendings } = own;
    if (sent?.begun === false) return { sendings: sendings - 1, ...(earlier ? {} : { sending: 'ended' }) };
    const most = sent === undefined || sent.bytes < (record.sentBytes ?? 0);
    return { sending: 'begun', sendings, ...(most ? {} : { sentBytes: sent.bytes, ofBytes: sent.of }) };
  };
  /** Writes the mark, and repeats a failed write until `forMs` are over. */
  const mark = (record: PaymentRecord, held: PaymentRecord, forMs: number): Promise<Advanced | Unwritten> => {
    const sendings = (held.sendings ?? 0) + 1;
    const command = { ...fencingToken(held), facts: { sending: 'begun', sendings }, leaseMs: LEASE_MS } as const;
    const written = persist(() => ledger.note(command), time, pausesFor(forMs, MARK_PAUSE_MS, time));
    const earlier = held.sending === 'begun';
    begun.set(record, { record: held, mark: written, earlier, sendings });
    return written;
  };
  const close = async (
    record: PaymentRecord,
    facts: DeliveryFacts,
    delivery: Delivery,
    change: Pick<Advance, 'to' | 'againMs' | 'facts' | 'keeping'>,
  ): Promise<void> => {
    const at = new Date();
    const { requestId, callId, durationMs } = facts;
    const resumed = requestId === record.requestId ? {} : { resumedBy: requestId };
    const settledAt = new Date(record.settledAt ?? at);
    const stated = { ...record, ...change.facts };
    const receipt = receiptOf(stated, { settledAt, at, durationMs, delivery, callId, ...resumed });
    const ended = { ...change, leaseMs: 0, receipt, events: facts.journal.take() };
    const command = { ...ended, ...fencingToken(begun.get(record)?.record ?? record) };
    let written: Advanced | Unwritten;
    if (change.to === 'undelivered') written = await persist(() => ledger.advance(command), time);
    else {
      // No caller waits for this write, and without it answer and refund would both be due.
      written = await persist(() => ledger.advance(command), time, PATIENT_PAUSES_MS);
      if (written.kind === 'fenced' || written.kind === 'illegal')
        written = (await deliveredAfterAll(ledger, time, record, ended)) ?? written;
    }
    facts.lease.drop();
    if (written.kind === 'done') {
      if (change.to === 'delivered') passed('delivered', record.payId);
      return;
    }
    facts.journal.putBack(command.events);
    facts.journal.flush();
    if (written.kind === 'illegal' && written.state === change.to) return;
    warn.unwritten({ payId: record.payId, err: causeOf(written) });
  };
  return {
    /**
     * Marks that bytes of the answer are about to leave. Call it when the first byte is there, and
     * send nothing before it resolves. Then the store has the mark, which tells a death from here
     * on from an earlier one, or the store was away for too long. False: the payment is sent back,
     * and nothing may leave. Never rejects.
     */
    async sending(record: PaymentRecord): Promise<boolean> {
      let held = record;
      for (let lost = 0; ; lost += 1) {
        const written = await mark(record, held, MARK_WAIT_MS);
        if (written.kind === 'done') {
          const own = begun.get(record);
          if (own !== undefined) begun.set(record, { ...own, record: written.record });
          return true;
        }
        if (written.kind === 'fenced' && lost < TAKEOVERS) {
          // Another attempt has the record, which would state nothing about the bytes that leave
          // here.
          const retaken = await retake(ledger, time, record);
          if (retaken?.kind === 'over') return !SENT_BACK.has(retaken.state);
          if (retaken !== undefined) {
            held = retaken.record;
            continue;
          }
        }
        warn.unmarked({ payId: record.payId, err: causeOf(written) });
        if (written.kind === 'unwritten') void mark(record, held, LATE_MARK_MS);
        return true;
      }
    },
    /** The answer was sent completely. */
    delivered(record: PaymentRecord, facts: DeliveryFacts): Promise<void> {
      const { backendStatus, digests } = facts;
      const delivery = { backendStatus, deliveredAt: new Date(), failure: undefined, digests };
      return close(record, facts, delivery, {
        to: 'delivered',
        ...keeping(facts, deliveredKeepMs(record, keepAnswerMs())),
      });
    },
    /**
     * Money moved and the buyer has nothing yet. Resolves when the proof may be brought again.
     */
    async undelivered(record: PaymentRecord, facts: DeliveryFacts & Undelivered): Promise<void> {
      const forMs = windowLeftMs(record);
      const kept = keeping(facts, forMs);
      const { backendStatus, failure } = facts;
      const delivery = { backendStatus, deliveredAt: undefined, failure, answerKept: kept.keeping !== undefined };
      // A kept answer, or a request that may not be sent again, waits for its buyer; other answers
      // are fetched by the reconciler.
      const again = !isThere(facts) && facts.repeatable;
      return close(record, facts, delivery, {
        to: 'undelivered',
        facts: { reason: progressOf(facts), ...(await markEnd(record, facts.sent)) },
        againMs: again ? deliverAgainMs(record.tries) : forMs,
        ...kept,
      });
    },
  };
}

function causeOf(written: Exclude<Advanced, { kind: 'done' }> | Unwritten): unknown {
  return written.kind === 'unwritten' ? written.cause : new Error(written.kind);
}

/** `held`: taken over, and an answer may be delivered. `over`: the record is final. */
type Retaken =
  | { readonly kind: 'held'; readonly record: PaymentRecord }
  | { readonly kind: 'over'; readonly state: PaymentState };

/**
 * The answer is there, and another attempt took the record over, because this process stood still
 * or the store was away for longer than a lease. Takes the record back once that attempt has ended.
 * Undefined when it does not end, or when the store is away or has lost the record. Never rejects.
 */
async function retake(
  ledger: PaymentLedger,
  time: Pick<Time, 'sleep'>,
  terms: PaymentRecord,
): Promise<Retaken | undefined> {
  // One owner for all looks: a claim whose reply was lost is found again.
  const owner = randomUUID();
  for (let look = 0; look < LOOKS; look += 1) {
    const claim = ledger.reserve({ terms, owner, leaseMs: LEASE_MS, longestMs: LONGEST_LEASE_MS });
    const reservation = await claim.catch(() => undefined);
    if (reservation === undefined || reservation.kind === 'in_flight') {
      await time.sleep(PAUSE_MS);
      continue;
    }
    // The store lost the record, and knows the mandate or a refusal.
    if (reservation.kind === 'mandate' || reservation.kind === 'refused') return undefined;
    const { record } = reservation;
    if (reservation.kind !== 'granted') return { kind: 'over', state: record.state };
    if (DELIVERING_STATES.includes(record.state)) return { kind: 'held', record };
    // The store lost the record: no attempt needs the reservation that began here. In another state
    // the lease ends by itself.
    if (record.state === 'reserved') await ledger.discard(fencingToken(record), []).catch(() => undefined);
    return undefined;
  }
  return undefined;
}

/**
 * Records an answer that went out although another attempt took the record over; otherwise a refund
 * would be due for a delivered answer. Undefined when the record ended otherwise; `illegal` from
 * `delivered` when the other attempt recorded the delivery.
 */
async function deliveredAfterAll(
  ledger: PaymentLedger,
  time: Pick<Time, 'sleep'>,
  terms: PaymentRecord,
  delivered: Omit<Advance, 'payId' | 'owner' | 'fence' | 'step'>,
): Promise<Advanced | undefined> {
  const retaken = await retake(ledger, time, terms);
  if (retaken?.kind === 'held') {
    const command = { ...delivered, ...fencingToken(retaken.record) };
    const written = await persist(() => ledger.advance(command), time, PATIENT_PAUSES_MS);
    return written.kind === 'unwritten' ? undefined : written;
  }
  return retaken?.state === 'delivered' ? { kind: 'illegal', state: retaken.state } : undefined;
}

/** How long a delivered answer is kept, milliseconds: without a secret, no caller may get it. */
function deliveredKeepMs({ keyDigest, tokenDigest, channel }: PaymentRecord, keepAnswerMs: number): number {
  if (keyDigest !== undefined) return RETRY_WINDOW_MS;
  if (tokenDigest === undefined) return 0;
  return channel === 'a2a' ? Math.max(keepAnswerMs, A2A_KEEP_MS) : keepAnswerMs;
}

/** An answer that can be kept, with its time; otherwise nothing. */
function keeping(
  { answer, keptBefore = false }: Pick<DeliveryFacts, 'answer' | 'keptBefore'>,
  forMs: number,
): Pick<Advance, 'keeping'> {
  // A delivered answer may be kept for 0 ms, which deletes it.
  if (keptBefore) return { keeping: { forMs } };
  return answer === undefined || forMs < 1 || answer.body.byteLength > MAX_KEPT_BYTES
    ? {}
    : { keeping: { answer, forMs } };
}

/** `reason` of an undelivered record. */
function progressOf(facts: DeliveryFacts & Undelivered): string {
  if (isThere(facts)) return ANSWER_KEPT;
  return facts.requestWritten ? REQUEST_MAY_BE_WRITTEN : REQUEST_NOT_WRITTEN;
}

/** Whether the whole answer is there or kept already; a part of an answer is none. */
function isThere({ answer, keptBefore = false }: DeliveryFacts): boolean {
  return answer !== undefined || keptBefore;
}
