import fc from 'fast-check';
import { LedgerCorruption } from '../../../src/payments/ledger/invariants.ts';
import type { PaymentRecord, PaymentState } from '../../../src/payments/ledger/ledger.ts';
import { advance, discard, note, type Outcome, renew, reserve } from '../../../src/payments/ledger/table.ts';
import { type Answer, type Call, callOf, newSubject } from './drawn-calls.ts';
import { type Command, commands, SPAN } from './drawn-commands.ts';

const NOW = 1_800_000_000_000;
const LONGEST_WALK = 64;

/** One step of a walk over the pure table. */
export interface Step {
  readonly call: Call;
  readonly now: number;
  readonly before: PaymentRecord | undefined;
  /** Undefined when the call was refused as a bug of the caller, or as damage. */
  readonly outcome: Outcome<Answer> | undefined;
  readonly after: PaymentRecord | undefined;
  /**
   * States of this record so far, the present one included; a record that was deleted begins anew.
   */
  readonly reached: ReadonlySet<PaymentState>;
  /** A record under each fence that is over, since the record was made. */
  readonly former: readonly PaymentRecord[];
}

/** Random commands to one authorization, with the time between them, milliseconds. */
export const walks: fc.Arbitrary<readonly (readonly [Command, number])[]> = fc
  .tuple(
    commands,
    fc.array(fc.constantFrom(0, 0, 1, 2, SPAN.long), { minLength: LONGEST_WALK, maxLength: LONGEST_WALK }),
  )
  .map(([drawn, waits]) => drawn.map((command, i) => [command, waits[i % LONGEST_WALK] ?? 0]));

/** What the table makes of a call. @throws LedgerCorruption, RangeError */
export function applied(record: PaymentRecord | undefined, call: Call, now: number): Outcome<Answer> {
  switch (call.kind) {
    case 'reserve':
      return reserve(record, call.command, now);
    case 'advance':
      return advance(record, call.command, now);
    case 'note':
      return note(record, call.command, now);
    case 'renew':
      return renew(record, { ...call.claim, leaseMs: call.leaseMs }, now);
    case 'discard':
      return discard(record, call.holder);
  }
}

/** Walks, and shows every step. Answers how many there were. */
export function walk(drawn: readonly (readonly [Command, number])[], show: (step: Step) => void): number {
  const subject = newSubject();
  let now = NOW;
  let record: PaymentRecord | undefined;
  let reached = new Set<PaymentState>();
  let former: PaymentRecord[] = [];
  for (const [command, waitMs] of drawn) {
    now += waitMs;
    const before = record;
    const call = callOf(command, subject, before);
    const outcome = attempted(before, call, now);
    if (outcome !== undefined) record = outcome.record;
    if (before !== undefined && record !== undefined && record.fence !== before.fence) former = [...former, before];
    reached = record === undefined ? new Set() : new Set([...reached, record.state]);
    if (record === undefined) former = [];
    show({ call, now, before, outcome, after: record, reached, former });
  }
  return drawn.length;
}

function attempted(record: PaymentRecord | undefined, call: Call, now: number): Outcome<Answer> | undefined {
  try {
    return applied(record, call, now);
  } catch (thrown) {
    if (thrown instanceof LedgerCorruption || thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}
