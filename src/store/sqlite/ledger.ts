import { finishUses, reserveUses } from '../../mandates/register/register-table.ts';
import type { Keeping, PaymentLedger, PaymentRecord, Reserve } from '../../payments/ledger/ledger.ts';
import { admitted, endedUses } from '../../payments/ledger/mandate-use.ts';
import { unlessRefused } from '../../payments/ledger/refusals.ts';
import { advance, discard, note, type Outcome, renew, reserve } from '../../payments/ledger/table.ts';
import { answerRows } from './answers.ts';
import type { Database } from './database.ts';
import type { AppendEvents } from './feed.ts';
import type { PutReceipts } from './receipts.ts';
import { paymentRows } from './records.ts';
import { refusalRows } from './refusals.ts';
import type { SqliteRegister } from './register.ts';
import { tokenRows } from './tokens.ts';

/** What becomes true in the same transaction as a change of a record. */
interface LedgerParts {
  readonly append: AppendEvents;
  readonly put: PutReceipts;
  readonly drop: (receiptId: string) => void;
  readonly register: SqliteRegister;
}

/** The ledger in SQLite: the pure table between a read and a write of one transaction. */
export function sqliteLedger(database: Database, { append, put, drop, register }: LedgerParts): PaymentLedger {
  const rows = paymentRows(database);
  const answers = answerRows(database);
  const refusals = refusalRows(database);
  const tokens = tokenRows(database);
  /** Applies a pure command; `and` is what becomes true with it, and only when the command changed something. */
  const apply = <Answer>(
    payId: string,
    command: (record: PaymentRecord | undefined, now: number) => Outcome<Answer>,
    and: (now: number) => void = () => undefined,
  ): Promise<Answer> =>
    database.write((now) => {
      const before = rows.read(payId, now);
      const { answer, record, changed } = command(before, now);
      if (!changed) return answer;
      if (record === undefined) rows.remove(payId);
      else rows.write(record);
      const ended = endedUses(before, record);
      if (ended !== undefined) finishUses(register, ended.claim, ended.how, now);
      and(now);
      return answer;
    });
  const keep = (payId: string, keeping: Keeping | undefined, now: number): void => {
    if (keeping !== undefined) answers.put(payId, keeping, now);
  };

  const shownFor = ({ token }: Reserve, now: number): string | undefined =>
    token?.kind === 'issued' ? tokens.shownFor(token.id, now) : undefined;
  /** The first payment that shows a token has it. */
  const noteToken = (command: Reserve, now: number): void => {
    const { terms, token } = command;
    if (token?.kind === 'issued' && shownFor(command, now) === undefined)
      tokens.note(token.id, terms.payId, now + token.forMs);
  };

  return {
    reserve: (command) =>
      apply(
        command.terms.payId,
        (record, now) => {
          const outcome = reserve(record, command, now, shownFor(command, now));
          const taken = unlessRefused(outcome, record, command, (proof) => refusals.reason(proof, now));
          const allowed = admitted(taken, record, (claim) => reserveUses(register, claim, now));
          if (allowed.changed && allowed.answer.kind === 'granted') noteToken(command, now);
          return allowed;
        },
        (now) => {
          rows.purge(now);
          answers.purge(now);
          tokens.purge(now);
          if (command.terms.mandate !== undefined) register.purge(now);
        },
      ),
    advance: (command) =>
      apply(
        command.payId,
        (record, now) => advance(record, command, now),
        (now) => {
          keep(command.payId, command.keeping, now);
          if (command.receipt !== undefined) put([command.receipt]);
          if (command.dropReceipt !== undefined) drop(command.dropReceipt);
          append(command.events, now);
        },
      ),
    note: (command) =>
      apply(
        command.payId,
        (record, now) => note(record, command, now),
        (now) => {
          keep(command.payId, command.keeping, now);
          if (command.receipt !== undefined) put([command.receipt]);
          append(command.events ?? [], now);
        },
      ),
    renew: (claim, leaseMs) => apply(claim.payId, (record, now) => renew(record, { ...claim, leaseMs }, now)),
    discard: (held, events, refusal) =>
      apply(
        held.payId,
        (record, now) => {
          const outcome = discard(record, held);
          if (refusal !== undefined && outcome.answer.kind === 'gone') refusals.put(refusal, now);
          return outcome;
        },
        (now) => append(events, now),
      ),
    read: (payId) => database.read((now) => rows.read(payId, now)),
    kept: (payId) => database.read((now) => answers.read(payId, now)),
    due: (limit) => database.read((now) => rows.due(now, limit)),
  };
}
