import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import fc from 'fast-check';
import type {
  Advance,
  Advanced,
  Claim,
  Discarded,
  Holder,
  Note,
  PaymentFacts,
  PaymentRecord,
  PaymentState,
  Reservation,
  Reserve,
} from '../../../src/payments/ledger/ledger.ts';
import {
  advance,
  assertRecord,
  discard,
  isFinal,
  LedgerCorruption,
  note,
  type Outcome,
  renew,
  reserve,
  TRANSITIONS,
} from '../../../src/payments/ledger/table.ts';
import { LEAST_FACTS, NOW, sha256, TRANSACTION, terms } from './samples.ts';

/** One call of the table, with all its bytes: the same for a repetition. */
type Call =
  | { readonly kind: 'reserve'; readonly command: Reserve }
  | { readonly kind: 'advance'; readonly command: Advance }
  | { readonly kind: 'note'; readonly command: Note }
  | { readonly kind: 'renew'; readonly command: Claim & { readonly leaseMs: number } }
  | { readonly kind: 'discard'; readonly command: Holder };
/** What the table answers to a call. */
type Answer = Reservation | Advanced | Discarded | boolean;

const STATES = Object.keys(TRANSITIONS) as PaymentState[];
/** Longer than any pause, milliseconds. */
const LONG_MS = 600_000;
const OFFERED = terms('one');

/** One of these times, and now and then what no caller may ask for, milliseconds. */
const span = (...usual: readonly number[]) =>
  fc.oneof({ weight: 50, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: fc.constant(-1) });

/** What a call is made of, as the record stands. */
const drawn = fc.record({
  kind: fc.constantFrom(
    ...(['reserve', 'reserve', 'advance', 'advance', 'advance', 'advance', 'note', 'renew', 'discard'] as const),
  ),
  waitMs: fc.constantFrom(0, 0, 1, 2, LONG_MS),
  owner: fc.constantFrom('ada', 'ben', 'eve'),
  otherBind: fc.nat(9).map((n) => n === 0),
  longestMs: fc.option(span(1, LONG_MS), { nil: undefined }),
  // Mostly the owner, and a state that follows, so that walks reach the late states.
  writer: fc.constantFrom('owner', 'owner', 'owner', 'owner', 'owner', 'former', 'stranger', 'later'),
  next: fc.nat(999),
  // Few enough that a new command sometimes has the step of an old one.
  step: fc.nat(29).map((n) => `step-${n}`),
  leaseMs: span(0, 1, LONG_MS, LONG_MS),
  againMs: span(0, 1, LONG_MS),
  unchanged: fc.constantFrom(undefined, undefined, undefined, undefined, 'last', 'wrong'),
  facts: fc.constantFrom<PaymentFacts | 'none'>(
    ...[{}, {}, {}, {}, 'none' as const, { reason: 'because' }, { transaction: TRANSACTION }],
    ...[{ rawTransaction: '0x02f8' }, { sending: 'begun' as const }, { bought: sha256('buyer') }, { answered: 200 }],
    ...(['operator', 'logs', 'claim', 'expired', 'unclaimed'] as const).map((evidence) => ({ evidence })),
  ),
});
type Drawn = typeof drawn extends fc.Arbitrary<infer One> ? One : never;

function callOf(record: PaymentRecord | undefined, one: Drawn): Call {
  const { payId, bind } = OFFERED;
  const { leaseMs, againMs, step, next, writer, unchanged } = one;
  const { owner, fence } = record ?? { owner: 'ada', fence: 1 };
  const { kind } = record === undefined && next % 8 !== 0 ? ({ kind: 'reserve' } as const) : one;
  if (kind === 'reserve') {
    const longest = one.longestMs === undefined ? {} : { longestMs: one.longestMs };
    const asked = { ...OFFERED, bind: one.otherBind ? sha256('something else') : bind };
    return { kind, command: { terms: asked, owner: one.owner, leaseMs, ...longest } };
  }
  const holder = {
    payId,
    step,
    owner: writer === 'former' ? 'ada' : writer === 'stranger' ? 'mallory' : owner,
    fence: writer === 'former' ? Math.max(1, fence - 1) : writer === 'later' ? fence + 1 : fence,
    ...(record === undefined ? {} : { seen: unchanged === 'wrong' ? { ...record, step: 'never written' } : record }),
  };
  if (kind === 'renew') return { kind, command: { ...holder, leaseMs } };
  if (kind === 'discard') return { kind, command: holder };
  const following = record === undefined || next % 11 === 0 ? STATES : TRANSITIONS[record.state];
  const to = (kind === 'advance' ? following : [])[next % Math.max(following.length, 1)];
  const least = to === undefined ? {} : LEAST_FACTS[to];
  const facts = one.facts === 'none' ? {} : { ...least, ...one.facts };
  const written = {
    ...holder,
    leaseMs,
    againMs,
    facts,
    ...(unchanged === undefined ? {} : { unchanged: true as const }),
  };
  return to === undefined
    ? { kind: 'note', command: written }
    : { kind: 'advance', command: { ...written, to, events: [] } };
}

/** Calls in any order, with the time before each. */
const walks = fc.array(drawn, { minLength: 16, maxLength: 32, size: 'max' });

/** One step of a walk over the table. */
interface Step {
  readonly call: Call;
  readonly now: number;
  readonly before: PaymentRecord | undefined;
  /** Undefined when the call was refused as a bug of the caller, or as damage. */
  readonly outcome: Outcome<Answer> | undefined;
  readonly after: PaymentRecord | undefined;
  /** A record under each fence that is over, since the record was made. */
  readonly former: readonly PaymentRecord[];
}

/** What the table makes of a call. @throws LedgerCorruption, RangeError */
function applied(record: PaymentRecord | undefined, call: Call, now: number): Outcome<Answer> {
  switch (call.kind) {
    case 'reserve':
      return reserve(record, call.command, now);
    case 'advance':
      return advance(record, call.command, now);
    case 'note':
      return note(record, call.command, now);
    case 'renew':
      return renew(record, call.command, now);
    case 'discard':
      return discard(record, call.command);
  }
}

/** Walks, and shows every step. */
function walk(calls: readonly Drawn[], show: (step: Step) => void): void {
  let now = NOW;
  let record: PaymentRecord | undefined;
  let former: PaymentRecord[] = [];
  for (const one of calls) {
    now += one.waitMs;
    const before = record;
    const call = callOf(before, one);
    let outcome: Outcome<Answer> | undefined;
    try {
      outcome = applied(before, call, now);
      record = outcome.record;
    } catch (thrown) {
      if (!(thrown instanceof LedgerCorruption || thrown instanceof RangeError)) throw thrown;
    }
    if (before !== undefined && record !== undefined && record.fence !== before.fence) former = [...former, before];
    if (record === undefined) former = [];
    show({ call, now, before, outcome, after: record, former });
  }
}

const RUNS = 2_000;
/** A rule that hardly ever applies would prove nothing. */
const LEAST_APPLIED = 30;

/** Checks one step; false when the rule does not apply. */
type Rule = (step: Step) => boolean;

const BY_OPERATOR: Readonly<Partial<Record<PaymentState, readonly PaymentState[]>>> = {
  unresolved: ['settled', 'refused'],
  refundDue: ['refunding', 'refunded'],
  refunding: ['refunding', 'refunded'],
};

const RULES: Readonly<Record<string, Rule>> = {
  'a fence never falls': ({ before, after }) => {
    if (before === undefined || after === undefined) return false;
    assert.ok(after.fence === before.fence || after.fence === before.fence + 1);
    return true;
  },
  'a final state never changes, nor anything with it': ({ call, before, after }) => {
    if (before === undefined || !isFinal(before.state)) return false;
    // That its answer was sold to another payment.
    if (call.kind === 'note' && before.state === 'refused') {
      const fixed = ({ state, evidence, units, payer }: PaymentRecord): unknown[] => [state, evidence, units, payer];
      assert.deepEqual(after && fixed(after), fixed(before));
      return true;
    }
    // What the operator does, and nothing else.
    if (after !== before)
      assert.ok(call.kind === 'advance' && after !== undefined && BY_OPERATOR[before.state]?.includes(after.state));
    return true;
  },
  'an answer that was there before the settlement is known to the end': ({ before, after }) => {
    if (before?.state !== 'worked' && before?.answered === undefined) return false;
    assert.equal(after?.answered, before.answered);
    return true;
  },
  'the same command twice is the command once, in answer and record': ({ call, now, outcome }) => {
    // Giving a lease up by renewing it for no time is no lease to renew the second time.
    if (outcome === undefined || (call.kind === 'renew' && call.command.leaseMs === 0)) return false;
    const again = applied(outcome.record, call, now);
    assert.deepEqual(again.answer, outcome.answer);
    assert.deepEqual(again.record, outcome.record);
    return outcome.changed;
  },
  'a write that comes again later changes nothing and is answered the same': ({ call, now, outcome }) => {
    if (outcome === undefined || call.kind === 'reserve' || call.kind === 'renew') return false;
    const again = applied(outcome.record, call, now + 1_000_000);
    assert.deepEqual(again, { answer: outcome.answer, record: outcome.record, changed: false });
    return outcome.changed;
  },
  'the owner before a take-over changes nothing any more, with any command': ({ call, now, after, former }) => {
    if (after === undefined || call.kind === 'reserve') return false;
    for (const { payId, owner, fence, step } of former) {
      // Its own last step as well: an applied step must not answer that it still holds.
      const claim = { payId, owner, fence };
      const late = [
        { kind: 'renew', command: { ...claim, leaseMs: 1_000 } },
        { kind: 'discard', command: { ...claim, step } },
        { kind: 'note', command: { ...claim, step, leaseMs: 1_000 } },
        { kind: 'advance', command: { ...claim, step, leaseMs: 1_000, to: 'delivered', events: [] } },
      ] as const;
      for (const old of late) {
        const { answer, record, changed } = applied(after, old, now);
        assert.deepEqual(answer, old.kind === 'renew' ? false : { kind: 'fenced' });
        assert.ok(record === after && !changed);
      }
    }
    return former.length > 0;
  },
  'a record whose lease runs is granted to no other owner': ({ call, now, before, after }) => {
    if (call.kind !== 'reserve' || before === undefined || before.leaseUntil <= now) return false;
    if (before.owner === call.command.owner) return false;
    // Only a lease above the longest that is in use is changed: it is cut, and still
    // runs for the same owner.
    const { leaseUntil, dueAt, ...rest } = before;
    const cut = after !== undefined && after.leaseUntil < leaseUntil && after.dueAt <= dueAt;
    assert.deepEqual(after, cut ? { ...rest, leaseUntil: after.leaseUntil, dueAt: after.dueAt } : before);
    return true;
  },
  'due is what is open, and never before its lease ends': ({ after }) => {
    if (after === undefined) return false;
    assert.equal(after.dueAt === 0, isFinal(after.state));
    assert.ok(after.dueAt >= after.leaseUntil);
    return true;
  },
  'tries only grow, by one at a time': ({ before, after }) => {
    if (before === undefined || after === undefined) return false;
    assert.ok(after.tries === before.tries || after.tries === before.tries + 1);
    return after.tries > before.tries;
  },
  'what was bought, by whom and for how much never changes': ({ before, after }) => {
    if (before === undefined || after === undefined) return false;
    for (const name of ['bind', 'requestId', 'receiptId', 'payer', 'payee', 'asset', 'units', 'nonce'] as const)
      assert.equal(after[name], before[name]);
    if (!isFinal(after.state)) assert.equal(after.proof, before.proof);
    return true;
  },
  'what is written is sound, and what is not written is not touched': ({ before, after, outcome }) => {
    if (outcome?.changed === true && after !== undefined) assertRecord(after);
    else if (outcome?.changed !== true) assert.equal(after, before);
    return outcome?.changed === true;
  },
};

describe('any commands to the table, in any order', () => {
  /** Drawn once for all rules: that takes far longer than to judge them. */
  const steps: Step[] = [];
  before(() => {
    for (const calls of fc.sample(walks, RUNS)) walk(calls, (step) => void steps.push(step));
  });

  for (const [name, rule] of Object.entries(RULES))
    it(name, (t) => {
      let appliedTo = 0;
      try {
        appliedTo = steps.filter(rule).length;
      } catch (broken) {
        // Another draw shows the shortest walk that breaks the rule, where it finds one.
        fc.assert(
          fc.property(walks, (calls) => void walk(calls, (step) => void rule(step))),
          { numRuns: RUNS },
        );
        throw broken;
      }
      t.diagnostic(`${steps.length} steps, ${appliedTo} of them under the rule`);
      assert.ok(appliedTo >= LEAST_APPLIED, `the rule applied to ${appliedTo} steps only`);
    });
});
