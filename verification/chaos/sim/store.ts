/** The store of the simulation: a model of its port, with everything that was committed to it. */

import { type ModelCommits, modelCommits } from '../../../spec/store/model.ts';
import type { EventDraft } from '../../../src/events/event.ts';
import type { OpenMandateState } from '../../../src/mandates/register/register-table.ts';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import type { Commit, Committed, Document } from '../../../src/store/port/commit.ts';
import type { Process } from './process.ts';

/** What changes of a payment, as it is stored. */
export type HeldRecord = Omit<PaymentRecord, 'proof' | 'backendRequest'>;

/** What a commit did to a record. */
export interface Change {
  readonly payId: string;
  readonly before: HeldRecord | undefined;
  readonly after: HeldRecord | undefined;
  /** The receipt as it stands after the commit. */
  readonly receipt: Receipt | undefined;
  readonly by: Process;
}

interface Logged {
  readonly at: number;
  readonly commit: Commit;
}

const PAYMENT = 'pay:';
const EPOCH = JSON.stringify({ born: 0, openFrom: 0 });

/** The documents of all processes. The simulation decides when a commit arrives. */
export class SimStore {
  /** As they were written last, also those that have ended. */
  readonly records = new Map<string, HeldRecord>();
  /** Payments of which the store has lost something. */
  readonly damaged = new Set<string>();
  readonly now: () => number;
  readonly #onChange: (change: Change) => void;
  #model: ModelCommits;
  #log: Logged[] = [];

  constructor(now: () => number, onChange: (change: Change) => void) {
    this.now = now;
    this.#onChange = onChange;
    this.#model = emptyModel(now);
  }

  commit(commit: Commit, by: Process): Committed {
    const written = paymentsIn(commit).map((payId) => ({ payId, before: this.#record(payId) }));
    const committed = this.#model.make(commit);
    if (committed.kind !== 'done') return committed;
    this.#log.push({ at: this.now(), commit });
    for (const { payId, before } of written) {
      const after = this.#follow(payId);
      const receipt = this.#parsed<Receipt>(`rcpt:${(after ?? before)?.receiptId}`);
      if (before !== undefined || after !== undefined) this.#onChange({ payId, before, after, receipt, by });
    }
    return committed;
  }

  documentAt(key: string): Document | undefined {
    return this.#model.documentAt(key);
  }

  get model(): ModelCommits {
    return this.#model;
  }

  isKept(payId: string): boolean {
    return this.documentAt(`res:${payId}`) !== undefined;
  }

  openMandate(id: string): OpenMandateState | undefined {
    return this.#parsed(`ap2:open:${id}`);
  }

  /** Those of the commits of a payment; of all of them without one. */
  events(payId?: string): readonly EventDraft[] {
    return this.#log.flatMap(({ commit }) =>
      payId === undefined || paymentsIn(commit).includes(payId) ? (commit.events ?? []) : [],
    );
  }

  /** When the next record is due, milliseconds; infinite when none will be. */
  nextDueAt(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { dueAt } of this.records.values()) if (dueAt !== 0 && dueAt < next) next = dueAt;
    return next;
  }

  /**
   * A power cut with a log that is synced once a second: the commits of the last `ms` are gone. A
   * flush: all of them.
   */
  rollBack(ms = Number.POSITIVE_INFINITY): void {
    const kept = this.#log.filter(({ at }) => at <= this.now() - ms);
    const lost = this.#log.slice(kept.length).flatMap(({ commit }) => paymentsIn(commit));
    for (const payId of lost) this.damaged.add(payId);
    this.#log = kept;
    this.#model = emptyModel(this.now);
    for (const { commit } of kept) this.#model.make(unconditional(commit));
    for (const payId of lost) this.#follow(payId);
  }

  #follow(payId: string): HeldRecord | undefined {
    const record = this.#record(payId);
    if (record === undefined) this.records.delete(payId);
    else this.records.set(payId, record);
    return record;
  }

  #record(payId: string): HeldRecord | undefined {
    return this.#parsed(PAYMENT + payId);
  }

  #parsed<Content>(key: string): Content | undefined {
    const document = this.documentAt(key);
    return document && (JSON.parse(document.value) as Content);
  }
}

function emptyModel(now: () => number): ModelCommits {
  const model = modelCommits(now);
  // A gateway begins it when it opens a store.
  model.put('ap2:epoch', EPOCH);
  return model;
}

/** The payments whose record a commit writes. */
function paymentsIn({ documents }: Commit): readonly string[] {
  return documents
    .filter(({ key, value }) => value !== undefined && key.startsWith(PAYMENT))
    .map(({ key }) => key.slice(PAYMENT.length));
}

/** A commit that was made, to be made again. */
function unconditional({ notBefore: _checked, documents, ...commit }: Commit): Commit {
  return { ...commit, documents: documents.map(({ expect: _seen, ...document }) => document) };
}
