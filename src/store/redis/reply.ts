/** Reads the replies of the scripts. */

import type { UseRefusal } from '../../mandates/register/register.ts';
import { assertRecord, LedgerCorruption } from '../../payments/ledger/invariants.ts';
import type { Advanced, PaymentRecord, Reservation, Reserve } from '../../payments/ledger/ledger.ts';
import { type Outcome, reserve } from '../../payments/ledger/table.ts';

/** Fields that are numbers in a record; a Redis hash holds text. */
const NUMBERS: ReadonlySet<string> = new Set([
  'validBefore',
  'fence',
  'leaseUntil',
  'dueAt',
  'tries',
  'reservedAt',
  'changedAt',
  'settledAt',
  'answered',
  'sendings',
  'sentBytes',
  'ofBytes',
]);

/** A hash as scripts answer it: field, value, field, value. @throws LedgerCorruption */
export function recordOf(flat: unknown): PaymentRecord {
  if (!Array.isArray(flat)) throw new LedgerCorruption('the reply holds no record');
  return recordFrom(
    Array.from({ length: flat.length / 2 }, (_, i): [string, unknown] => [String(flat[2 * i]), flat[2 * i + 1]]),
  );
}

/** @throws LedgerCorruption */
export function recordFrom(fields: readonly (readonly [string, unknown])[]): PaymentRecord {
  return assertRecord(
    Object.fromEntries(fields.map(([name, value]) => [name, NUMBERS.has(name) ? Number(value) : value])),
  );
}

/**
 * The reply of reserve.lua: kind, clock, record, and for a new record the payId of the payment that
 * showed its token first in the record's place; or `mandate` or `refused`, and the reason.
 * @throws LedgerCorruption
 */
export function reservationOf(reply: unknown, command: Reserve): Reservation {
  const [kind, clock, found] = parts(reply);
  if (kind === 'mandate') return { kind, reason: refusalOf(clock) };
  if (kind === 'refused') return { kind, reason: String(clock) };
  if (kind === 'granted' && !Array.isArray(found))
    return reserve(undefined, command, Number(clock), typeof found === 'string' ? found : undefined).answer;
  const record = recordOf(found);
  switch (kind) {
    case 'granted':
    case 'conflict':
    case 'guarded':
      return { kind, record };
    case 'completed':
      return { kind, record, endedMs: Number(clock) - record.changedAt };
    case 'in_flight':
      return { kind, record, leaseLeftMs: record.leaseUntil - Number(clock) };
    default:
      throw new LedgerCorruption('unknown reply to a reservation');
  }
}

/**
 * The reply of write.lua: kind, clock, and the record unless the command has seen it before this
 * write, which `change` makes of it by the table.
 * @throws LedgerCorruption
 */
export function advancedOf(
  reply: unknown,
  seen: PaymentRecord | undefined,
  change: (seen: PaymentRecord, now: number) => Outcome<Advanced>,
): Advanced {
  const [kind, detail, flat] = parts(reply);
  if (kind !== 'done') return standingOf(kind, detail);
  if (seen !== undefined && !Array.isArray(flat)) return change(seen, Number(detail)).answer;
  return { kind, record: recordOf(flat) };
}

/** How many receipts the write dropped. */
export function trimmedIn(reply: unknown): number {
  const [kind, , , trimmed] = parts(reply);
  return kind === 'done' && trimmed !== undefined ? Number(trimmed) : 0;
}

/** Replies of writes that changed nothing. @throws LedgerCorruption */
export function standingOf(kind: unknown, detail: unknown): Exclude<Advanced, { kind: 'done' }> {
  switch (kind) {
    case 'fenced':
    case 'lost':
      return { kind };
    case 'illegal':
      return { kind, state: detail as PaymentRecord['state'] };
    case 'corrupt':
      throw new LedgerCorruption(`${String(detail)} is missing`);
    default:
      throw new LedgerCorruption('unknown reply to a write');
  }
}

/** @throws LedgerCorruption */
export function parts(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply))
    throw new LedgerCorruption(`the reply is no list but ${reply === null ? 'null' : typeof reply}`);
  return reply;
}

const REFUSALS: ReadonlySet<unknown> = new Set<UseRefusal>([
  'replayed',
  'open_mandate_spent',
  'budget_exceeded',
  'recurrence_exceeded',
  'recurrence_too_soon',
]);

/** Why a script refused a claim. @throws LedgerCorruption */
export function refusalOf(reason: unknown): UseRefusal {
  if (!REFUSALS.has(reason)) throw new LedgerCorruption('unknown refusal of a mandate');
  return reason as UseRefusal;
}
