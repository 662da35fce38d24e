/** The store of the simulation: a model of its port, with everything that was committed to it. */

import { type ModelCommits, modelCommits } from '../../../spec/store/model.ts';
import type { EventDraft } from '../../../src/events/event.ts';
import type { OpenMandateState } from '../../../src/mandates/register.ts';
import { documentLedger } from '../../../src/payments/ledger/document-ledger.ts';
import type { PaymentLedger, PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { documentBook } from '../../../src/receipts/document-book.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import {
  type Commit,
  type Commits,
  type Committed,
  createTransact,
  type Document,
  type Transact,
} from '../../../src/store/port/commit.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import type { Process } from './gateway.ts';
import type { Mutant } from './seeds.ts';

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

/** How long a commit waits that no caller waits for, and what a clock may be off, milliseconds. */
const LATER_MS = 10;
const CLOCK_SLACK_MS = 1_000;
const LIMITS = { eventsMaxLength: 1_000, receiptsMaxLength: 1_000 };

/**
 * `watched`: of calls that only wait. `clockErrorMs`: of the store's clock as the process assumes
 * it at first. Calls `onBug` with errors that are no fault of the plan, because the code under test
 * turns an error after a settlement into "uncertain".
 */
export function ledgerPort(
  process: Process,
  store: SimStore,
  { mutant, clockErrorMs }: { readonly mutant: Mutant; readonly clockErrorMs: number },
  onBug: (thrown: unknown) => void,
): { readonly ledger: PaymentLedger; readonly watched: Pick<PaymentLedger, 'read'> } {
  const line = openLine(process, store, clockErrorMs);
  const commits = mutant.commits?.(line(), process.name) ?? line();
  const transact = createTransact(commits);
  const { writer } = documentBook(commits, transact, LIMITS);
  const over = (port: Commits, by: Transact = transact) => documentLedger(port, by, writer);
  const ledger = over(commits);
  const { reserve } = mutant.reads === undefined ? ledger : over(commits, misreading(transact, mutant.reads));
  const watched =
    <Asked extends readonly unknown[], Answer>(call: (...asked: Asked) => Promise<Answer>) =>
    (...asked: Asked): Promise<Answer> =>
      call(...asked).catch((thrown: unknown) => {
        if (!isSimulated(thrown)) onBug(thrown);
        throw thrown;
      });
  return {
    ledger: {
      reserve: watched(reserve),
      advance: watched(ledger.advance),
      note: watched(ledger.note),
      renew: watched(ledger.renew),
      discard: watched(ledger.discard),
      read: watched(ledger.read),
      kept: watched(ledger.kept),
      unpaid: watched(ledger.unpaid),
      due: watched(over(line('due')).due),
    },
    watched: over(line('look')),
  };
}

/** The port of one process, which keeps the store's clock as that of Redis does. */
function openLine(process: Process, store: SimStore, clockErrorMs: number): (label?: string) => Commits {
  let offset = clockErrorMs;
  const now = (): number => Math.floor(process.time.now() + offset);
  const ask = async <Answer>(label: string, effect: () => Answer | Promise<Answer>): Promise<Answer> => {
    const sentAt = process.time.now();
    const { clock, answer } = await process.ask(label, () => ({ clock: store.now(), answer: effect() }));
    offset = Math.min(Math.max(offset, clock - process.time.now()), clock - sentAt);
    return answer;
  };
  return (label) => ({
    now,
    async commit(commit, how) {
      if (how === 'later') await process.time.sleep(LATER_MS);
      const assumed = now();
      return ask<Committed>(label ?? labelOf(commit, store), () =>
        Math.abs(store.now() - assumed) > CLOCK_SLACK_MS ? { kind: 'early' } : store.commit(commit, process),
      );
    },
    read: (keys) => ask(label ?? 'read', () => new Map(keys.map((key) => [key, store.documentAt(key)]))),
    bytes: (key) => ask(label ?? 'kept', () => store.model.bytes(key)),
    members: (list, stretch) => ask(label ?? 'list', () => store.model.members(list, stretch)),
    size: (list) => ask(label ?? 'list', () => store.model.size(list)),
  });
}

/** The name of a commit in a trace. A renewal, which keeps the step, is no point of its own. */
function labelOf({ documents }: Commit, store: SimStore): string {
  const change = documents.find(({ key, value }) => key.startsWith('pay:') && value !== undefined);
  if (typeof change?.value !== 'string') return change === undefined ? 'commit' : 'discard';
  const { payId, state, step, leaseUntil } = JSON.parse(change.value) as HeldRecord;
  const before = store.records.get(payId);
  return before?.step === step && before.leaseUntil !== leaseUntil ? 'renew' : `commit ${state}`;
}

/** Decides on records other than those that are stored. */
function misreading(transact: Transact, reads: NonNullable<Mutant['reads']>): Transact {
  return (guessed, decide) =>
    transact(guessed, (read, now) =>
      decide((key) => {
        const document = read(key);
        return document !== undefined && key.startsWith('pay:') ? changed(document, now) : document;
      }, now),
    );
  function changed({ version, value }: Document, now: number): Document | undefined {
    const record = reads(JSON.parse(value) as HeldRecord, now);
    return record && { version, value: JSON.stringify(record) };
  }
}

function isSimulated(thrown: unknown): boolean {
  return thrown instanceof StoreError && typeof thrown.cause === 'string';
}
