/** The store of the simulation. */

import {
  firstShown,
  type KeptAnswers,
  keepAnswer,
  noteToken,
  type ShownTokens,
} from '../../../spec/store/table-store.ts';
import type { EventDraft } from '../../../src/events/event.ts';
import type {
  Advance,
  Claim,
  Holder,
  Keeping,
  KeptAnswer,
  Note,
  PaymentRecord,
  Refusal,
  Reservation,
  Reserve,
} from '../../../src/payments/ledger/ledger.ts';
import { refusalEnds, unlessRefused } from '../../../src/payments/ledger/refusals.ts';
import * as table from '../../../src/payments/ledger/table.ts';
import { admitted } from '../../../src/payments/ledger/table.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import { SimUses } from './mandate.ts';

/** The state machine that a store runs: the real one, or a mutant of it. */
export type Table = Pick<typeof table, 'reserve' | 'advance' | 'note' | 'renew' | 'discard'>;

/** What a write did to a record. */
export interface Change {
  readonly payId: string;
  readonly before: PaymentRecord | undefined;
  readonly after: PaymentRecord | undefined;
  /** The receipt as it stands after the write. */
  readonly receipt: Receipt | undefined;
}

interface Version {
  readonly at: number;
  readonly record: PaymentRecord | undefined;
  readonly receipt: Receipt | undefined;
  readonly events: number;
}

/**
 * The state machine over maps. Every method is one atomic write; the simulation decides when it
 * happens.
 */
export class SimStore {
  readonly records = new Map<string, PaymentRecord>();
  readonly receipts = new Map<string, Receipt>();
  readonly uses = new SimUses();
  readonly #tokens: ShownTokens = new Map();
  /** Of payment transitions, by payment. */
  readonly events = new Map<string, EventDraft[]>();
  /** Payments of which the store has lost something. */
  readonly damaged = new Set<string>();
  readonly #answers: KeptAnswers = new Map();
  readonly #refusals = new Map<string, { readonly reason: string; readonly until: number }>();
  readonly #versions = new Map<string, Version[]>();
  readonly #now: () => number;
  readonly #table: Table;
  readonly #onChange: (change: Change) => void;

  constructor(now: () => number, onChange: (change: Change) => void, mutant: Partial<Table> = {}) {
    this.#now = now;
    this.#onChange = onChange;
    this.#table = { ...table, ...mutant };
  }

  reserve(command: Reserve, skewMs = 0): Reservation {
    const { payId } = command.terms;
    const before = this.records.get(payId);
    const now = this.#now();
    const outcome = this.#table.reserve(before, command, now + skewMs, firstShown(this.#tokens, command, now));
    const taken = unlessRefused(outcome, before, command, (proof) => {
      const found = this.#refusals.get(proof);
      return found !== undefined && found.until > now ? found.reason : undefined;
    });
    const allowed = admitted(taken, before, (claim) => this.uses.reserve(claim, now));
    if (allowed.changed && allowed.answer.kind === 'granted') noteToken(this.#tokens, command, now);
    return this.#settle(payId, allowed);
  }

  advance(command: Advance) {
    const outcome = this.#table.advance(this.records.get(command.payId), command, this.#now());
    return this.#settle(command.payId, outcome, command);
  }

  note(command: Note) {
    const outcome = this.#table.note(this.records.get(command.payId), command, this.#now());
    return this.#settle(command.payId, outcome, command);
  }

  renew(claim: Claim, leaseMs: number): boolean {
    const { payId } = claim;
    return this.#settle(payId, this.#table.renew(this.records.get(payId), { ...claim, leaseMs }, this.#now()));
  }

  discard(held: Holder, events: readonly EventDraft[], refusal?: Refusal) {
    const discarded = this.#settle(held.payId, this.#table.discard(this.records.get(held.payId), held), { events });
    const known = this.#refusals.get(refusal?.proof ?? '');
    if (refusal !== undefined && discarded.kind === 'gone' && (known?.until ?? 0) <= this.#now())
      this.#refusals.set(refusal.proof, { reason: refusal.reason, until: refusalEnds(refusal, this.#now()) });
    return discarded;
  }

  kept(payId: string): KeptAnswer | undefined {
    const kept = this.#answers.get(payId);
    return kept !== undefined && kept.until > this.#now() ? kept.answer : undefined;
  }

  due(limit: number): readonly PaymentRecord[] {
    return [...this.records.values()]
      .filter(({ dueAt }) => dueAt !== 0 && dueAt <= this.#now())
      .sort((a, b) => a.dueAt - b.dueAt || (a.payId < b.payId ? -1 : 1))
      .slice(0, limit);
  }

  /** When the next record is due, milliseconds; infinite when none will be. */
  nextDueAt(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { dueAt } of this.records.values()) if (dueAt !== 0 && dueAt < next) next = dueAt;
    return next;
  }

  /**
   * A power cut, a failover, a flush: the record is gone. Receipts and events have keys of their
   * own and stay.
   */
  lose(payId: string): void {
    if (!this.records.delete(payId)) return;
    this.#answers.delete(payId);
    this.damaged.add(payId);
    this.uses.rebuild(this.records.values(), this.#now());
  }

  /** A power cut with a log that is synced once a second: the last writes of a payment are gone. */
  rollBack(payId: string, ms: number): void {
    const versions = this.#versions.get(payId) ?? [];
    const old = versions.findLast(({ at }) => at <= this.#now() - ms);
    if (old === undefined || old === versions.at(-1)) return;
    this.damaged.add(payId);
    this.#answers.delete(payId);
    if (old.record === undefined) this.records.delete(payId);
    else this.records.set(payId, old.record);
    if (old.receipt !== undefined) this.receipts.set(old.receipt.id, old.receipt);
    this.events.get(payId)?.splice(old.events);
    this.uses.rebuild(this.records.values(), this.#now());
  }

  #settle<Answer>(
    payId: string,
    { answer, record, changed }: table.Outcome<Answer>,
    carried: {
      readonly receipt?: Receipt;
      readonly dropReceipt?: string;
      readonly keeping?: Keeping;
      readonly events?: readonly EventDraft[];
    } = {},
  ): Answer {
    if (!changed) return answer;
    const before = this.records.get(payId);
    const { receipt, keeping, events = [] } = carried;
    if (record === undefined) this.records.delete(payId);
    else this.records.set(payId, record);
    this.uses.follow(before, record, this.#now());
    if (receipt !== undefined) this.receipts.set(receipt.id, receipt);
    if (carried.dropReceipt !== undefined) this.receipts.delete(carried.dropReceipt);
    keepAnswer(this.#answers, payId, keeping, this.#now());
    const written = entry(this.events, payId);
    written.push(...events);
    const known = this.receipts.get((record ?? before)?.receiptId ?? '');
    entry(this.#versions, payId).push({ at: this.#now(), record, receipt: known, events: written.length });
    this.#onChange({ payId, before, after: record, receipt: known });
    return answer;
  }
}

function entry<T>(map: Map<string, T[]>, key: string): T[] {
  const there = map.get(key);
  if (there !== undefined) return there;
  const made: T[] = [];
  map.set(key, made);
  return made;
}
