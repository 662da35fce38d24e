/** The real ledger of one simulated process, over its line to the store of the simulation. */

import { documentLedger } from '../../../src/payments/ledger/document-ledger.ts';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { documentBook } from '../../../src/receipts/document-book.ts';
import type { Commit, Commits, Committed, Document } from '../../../src/store/port/commit.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { createTransact, type Transact } from '../../../src/store/port/transact.ts';
import type { Mutant } from './mutant.ts';
import type { Process } from './process.ts';
import type { HeldRecord, SimStore } from './store.ts';

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
