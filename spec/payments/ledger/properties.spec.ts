import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, it } from 'node:test';
import fc from 'fast-check';
import type {
  Advance,
  Advanced,
  Claim,
  Discarded,
  Evidence,
  Holder,
  Note,
  PaymentRecord,
  PaymentState,
  PaymentTerms,
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
import { claimOf, mandateText } from '../../mandates/register/register-map.ts';
import { event, keptAnswer, NOW, REFUND, receipt, sha256, TRANSACTION, terms } from './samples.ts';

/** One call of the port, with all its bytes: the same for a repetition. */
type Call =
  | { readonly kind: 'reserve'; readonly command: Reserve }
  | { readonly kind: 'advance'; readonly command: Advance }
  | { readonly kind: 'note'; readonly command: Note }
  | { readonly kind: 'renew'; readonly command: Claim & { readonly leaseMs: number } }
  | { readonly kind: 'discard'; readonly command: Holder };
/** What the table answers to a call. */
type Answer = Reservation | Advanced | Discarded | boolean;
/** Makes a call about one authorization, as its record stands. */
type Draw = (offered: PaymentTerms, record: PaymentRecord | undefined) => Call;

const STATES = Object.keys(TRANSITIONS) as PaymentState[];
/** Longer than any pause, milliseconds. */
const LONG_MS = 600_000;

/** The members that are there. */
function given<T extends object>(members: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}
/** True once in `n` times. */
const rarely = (n: number) => fc.nat(n - 1).map((drawn) => drawn === n - 1);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
/** One of these times, and now and then what no caller may ask for, milliseconds. */
const span = (...usual: readonly number[]) =>
  fc.oneof({ weight: 50, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: fc.constant(-1) });

const leaseMs = span(0, 1, LONG_MS, LONG_MS);
const drawnReserve = fc.record({
  leaseMs,
  owner: fc.constantFrom('ada', 'ben', 'eve'),
  otherBind: rarely(6),
  key: fc.constantFrom(undefined, 'first', 'first', 'other'),
  longestMs: maybe(span(1, LONG_MS)),
  proof: fc.constantFrom(undefined, 'good', 'good', 'forged'),
  // A stored or a worthless one opens what it paid for like any other; a malformed one is a bug.
  token: fc.oneof(
    { weight: 40, arbitrary: fc.constantFrom(undefined, 'first', 'first', 'other', 'worthless', 'stored') },
    { weight: 1, arbitrary: fc.constant('malformed') },
  ),
  mandate: fc.boolean(),
});
const drawnHolder = fc.record({
  // Mostly the owner, so that sequences advance.
  writer: fc.constantFrom('owner', 'owner', 'owner', 'owner', 'owner', 'former', 'stranger', 'later'),
  // Few enough that a new command sometimes has the step of an old one.
  step: fc.nat(29).map((n) => `step-${n}`),
});
const drawnWrite = fc.record({
  leaseMs,
  seen: fc.constantFrom('none', 'last', 'last', 'last', 'wrong'),
  unchanged: rarely(12),
  againMs: maybe(span(0, 1, LONG_MS)),
  // `fitting`: such as the change of state wants, none where it wants none.
  evidence: fc.oneof(
    { weight: 6, arbitrary: fc.constant('fitting' as const) },
    {
      weight: 1,
      arbitrary: fc.constantFrom<Evidence | undefined>(
        ...(['operator', 'logs', 'claim', 'expired', 'elsewhere', 'unsent', 'unclaimed', undefined] as const),
      ),
    },
  ),
  transaction: rarely(3).map((missing) => (missing ? undefined : TRANSACTION)),
  rawTransaction: rarely(4).map((there) => (there ? '0x02f8' : undefined)),
  reason: maybe(fc.string({ unit: 'binary', maxLength: 8 })),
  recovered: rarely(8).map((there) => (there ? ('chain' as const) : undefined)),
  sending: fc.constantFrom(undefined, undefined, 'begun' as const, 'ended' as const),
  sent: maybe(fc.nat(9)),
  bought: rarely(6),
  key: rarely(8),
  dropReceipt: rarely(8),
  /** Without a text: what is kept already. */
  keeping: maybe(fc.record({ text: maybe(fc.string({ unit: 'binary', maxLength: 8 })), forMs: span(0, 1, LONG_MS) })),
  receipt: fc.boolean(),
  events: fc.boolean(),
  serial: fc.nat(999),
});
type DrawnReserve = typeof drawnReserve extends fc.Arbitrary<infer Drawn> ? Drawn : never;
type DrawnHolder = typeof drawnHolder extends fc.Arbitrary<infer Drawn> ? Drawn : never;
type DrawnWrite = typeof drawnWrite extends fc.Arbitrary<infer Drawn> ? Drawn : never;

const reserving = ({ owner, leaseMs, longestMs, ...drawn }: DrawnReserve): Draw => {
  return (offered) => {
    const { payId, requestId } = offered;
    const { key, proof, token } = drawn;
    const shown = token && sha256(`${payId} ${token === 'other' ? 'other' : 'first'}`);
    const id = token === 'malformed' ? token : sha256(`${requestId} ${token === 'other' ? 'other' : 'first'}`);
    const issued = token === 'worthless' ? { kind: token } : { kind: 'issued' as const, id, forMs: LONG_MS };
    const own = {
      keyDigest: key && sha256(key),
      tokenDigest: shown,
      mandate: drawn.mandate ? mandateText(claimOf(requestId)) : undefined,
      bind: drawn.otherBind ? sha256('something else') : offered.bind,
    };
    const asked = {
      longestMs,
      proof: proof && sha256(`${payId}-${proof}`).slice(0, 22),
      token: token === undefined || token === 'stored' ? undefined : (issued as NonNullable<Reserve['token']>),
    };
    return { kind: 'reserve', command: { terms: { ...offered, ...given(own) }, owner, leaseMs, ...given(asked) } };
  };
};

const held = ({ writer, step }: DrawnHolder, { payId }: PaymentTerms, record: PaymentRecord | undefined): Holder => {
  const { owner, fence } = record ?? { owner: 'ada', fence: 1 };
  if (writer === 'former') return { payId, step, owner: 'ada', fence: Math.max(1, fence - 1) };
  if (writer === 'stranger') return { payId, step, owner: 'mallory', fence };
  return { payId, step, owner, fence: writer === 'later' ? fence + 1 : fence };
};

/** A change of state, or without `to` a note. */
const writing = (by: DrawnHolder, drawn: DrawnWrite, to?: PaymentState): Draw => {
  return (offered, record) => {
    const { requestId, receiptId } = offered;
    const { leaseMs, againMs, keeping, transaction, rawTransaction, reason, recovered, sending, sent, serial } = drawn;
    const holder = held(by, offered, record);
    const events = [event('backend.called', requestId, { data: { step: by.step } })];
    // A wrong one has another step: a table that trusts it answers what it never held.
    const wrong = { step: 'never written', resourceId: 'another' };
    const facts = given({
      ...{ transaction, rawTransaction, reason, recovered, sending },
      evidence: drawn.evidence === 'fitting' ? fitting(to, by.step) : drawn.evidence,
      // Now and then where it does not belong, or missing where it does.
      refundTransaction: (to === 'refunding' || to === 'refunded') !== (serial % 16 === 0) ? REFUND : undefined,
      answered: (to === 'worked') !== (serial % 16 === 1) ? 200 : undefined,
      ...(sent === undefined ? {} : { sendings: sent, sentBytes: sent * 100_000, ofBytes: 0 }),
      // A note is for a refused record then; with a change of state it is a bug.
      bought: drawn.bought && (to === undefined || serial % 32 === 2) ? sha256('buyer') : undefined,
      keyDigest: drawn.key ? sha256('first') : undefined,
    });
    const more = given({
      againMs,
      seen:
        drawn.seen === 'none' || record === undefined
          ? undefined
          : drawn.seen === 'last'
            ? record
            : { ...record, ...wrong },
      unchanged: drawn.unchanged || undefined,
      keeping:
        keeping &&
        (keeping.text === undefined
          ? { forMs: keeping.forMs }
          : { answer: keptAnswer(keeping.text), forMs: keeping.forMs }),
      receipt: drawn.receipt ? receipt(receiptId, requestId, { backendStatus: serial }) : undefined,
    });
    const written = { ...holder, leaseMs, facts, ...more };
    if (to === undefined) return { kind: 'note', command: { ...written, ...(drawn.events ? { events } : {}) } };
    const dropped = drawn.dropReceipt ? { dropReceipt: receiptId } : {};
    return { kind: 'advance', command: { ...written, to, events, ...dropped } };
  };
};

function fitting(to: PaymentState | undefined, step: string): Evidence | undefined {
  const third = Number(step.split('-')[1]) % 3;
  if (to === 'settled') return (['logs', 'claim', 'operator'] as const)[third];
  if (to === 'refused') return (['expired', step.length > 6 ? 'elsewhere' : 'unclaimed', 'unsent'] as const)[third];
  return undefined;
}

const any: fc.Arbitrary<Draw> = fc.oneof(
  { weight: 5, arbitrary: drawnReserve.map(reserving) },
  {
    weight: 5,
    arbitrary: fc.tuple(drawnHolder, drawnWrite, fc.constantFrom(...STATES)).map((drawn) => writing(...drawn)),
  },
  { weight: 3, arbitrary: fc.tuple(drawnHolder, drawnWrite).map(([by, drawn]) => writing(by, drawn)) },
  {
    weight: 2,
    arbitrary: fc.tuple(drawnHolder, leaseMs).map(([by, leaseMs]): Draw => {
      return (offered, record) => ({ kind: 'renew', command: { ...held(by, offered, record), leaseMs } });
    }),
  },
  {
    weight: 1,
    arbitrary: drawnHolder.map(
      (by): Draw =>
        (offered, record) => ({ kind: 'discard', command: held(by, offered, record) }),
    ),
  },
);

/**
 * All steps of a payment, so that late states are reached in every run of the suite; random
 * commands alone seldom reach them.
 */
const life: fc.Arbitrary<Draw[]> = fc
  .tuple(
    fc.constantFrom(
      'settling refused',
      'worked refused',
      'worked settling refused',
      'worked settling settled delivered',
      'worked settling withdrawn settling settled undelivered delivered',
      'settling unresolved settled undelivered delivered',
      'settling unresolved refused',
      'settling settled delivered',
      'settling withdrawn settling settled delivered',
      'settling withdrawn settling withdrawn settling',
      'settling settled undelivered delivered',
      'settling settled undelivered undelivered refundDue',
      'settling settled undelivered refundDue refunding refunding refunded',
    ),
    fc.array(drawnWrite, { minLength: 7, maxLength: 7 }),
    drawnReserve,
  )
  .map(([path, writes, drawn]) => {
    const first = { ...drawn, otherBind: false };
    const steps = path.split(' ') as PaymentState[];
    const all = steps.flatMap((to, i): Draw[] => {
      const common = writes[i] ?? assert.fail();
      const seen = common.unchanged ? 'last' : common.seen;
      const own = { ...common, seen, reason: common.reason ?? 'because' };
      const write = writing({ writer: 'owner', step: `life-${i}` }, own, to);
      // Sometimes another attempt goes on, if the lease allows it.
      const heir = reserving({ ...first, owner: 'eve', leaseMs: common.leaseMs });
      return common.serial % 3 === 0 ? [heir, write] : [write];
    });
    return [reserving(first), ...all];
  });

/** Random commands with the time before each, alone or inserted at a random step of a payment. */
const walks: fc.Arbitrary<readonly (readonly [Draw, number])[]> = fc
  .tuple(
    fc.oneof(
      fc.array(any, { maxLength: 16, size: 'max' }),
      fc
        .tuple(life, fc.array(any, { maxLength: 5 }), fc.array(any, { maxLength: 5 }), fc.nat(6))
        .map(([steps, between, after, at]) => [...steps.slice(0, at), ...between, ...steps.slice(at), ...after]),
    ),
    fc.array(fc.constantFrom(0, 0, 1, 2, LONG_MS), { minLength: 64, maxLength: 64 }),
  )
  .map(([drawn, waits]) => drawn.map((draw, i) => [draw, waits[i % 64] ?? 0]));

/** One step of a walk over the pure table. */
interface Step {
  readonly call: Call;
  readonly now: number;
  readonly before: PaymentRecord | undefined;
  /** Undefined when the call was refused as a bug of the caller, or as damage. */
  readonly outcome: Outcome<Answer> | undefined;
  readonly after: PaymentRecord | undefined;
  /** States of this record so far; a record that was deleted begins anew. */
  readonly reached: ReadonlySet<PaymentState>;
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
function walk(drawn: readonly (readonly [Draw, number])[], show: (step: Step) => void): void {
  const requestId = randomUUID();
  const offered = terms(requestId, { requestId });
  let now = NOW;
  let record: PaymentRecord | undefined;
  let reached = new Set<PaymentState>();
  let former: PaymentRecord[] = [];
  for (const [draw, waitMs] of drawn) {
    now += waitMs;
    const before = record;
    const call = draw(offered, before);
    let outcome: Outcome<Answer> | undefined;
    try {
      outcome = applied(before, call, now);
      record = outcome.record;
    } catch (thrown) {
      if (!(thrown instanceof LedgerCorruption || thrown instanceof RangeError)) throw thrown;
    }
    if (before !== undefined && record !== undefined && record.fence !== before.fence) former = [...former, before];
    reached = record === undefined ? new Set() : new Set([...reached, record.state]);
    if (record === undefined) former = [];
    show({ call, now, before, outcome, after: record, reached, former });
  }
}

const RUNS = 1_500;
/** A rule that hardly ever applies would prove nothing. */
const LEAST_APPLIED = 30;
const PAID = ['logs', 'claim', 'operator'];
const WORTHLESS = ['expired', 'elsewhere', 'unsent', 'unclaimed', 'operator'];
const AFTER_PAYMENT = ['settled', 'delivered', 'undelivered', 'refundDue', 'refunding', 'refunded'];

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
  'what was paid has its evidence, and nothing before has': ({ after }) => {
    if (after === undefined || after.state === 'refused') return false;
    if (AFTER_PAYMENT.includes(after.state)) assert.ok(PAID.includes(String(after.evidence)));
    else assert.equal(after.evidence, undefined);
    return true;
  },
  'refused has its evidence and reason, and never follows settled': ({ after, reached }) => {
    if (after?.state !== 'refused') return false;
    assert.ok(WORTHLESS.includes(String(after.evidence)));
    assert.ok(after.reason);
    for (const state of AFTER_PAYMENT) assert.ok(!reached.has(state as never));
    return true;
  },
  'evidence, once there, is never another': ({ before, after }) => {
    if (before?.evidence === undefined) return false;
    assert.equal(after?.evidence, before.evidence);
    return true;
  },
  'what was settling or worked is never deleted': ({ before, after, reached }) => {
    if (before === undefined || before.state === 'reserved') return false;
    assert.ok(after !== undefined && (reached.has('settling') || reached.has('worked')));
    return true;
  },
  'an answer that was there before the settlement is known to the end': ({ before, after }) => {
    if (before?.state !== 'worked' && before?.answered === undefined) return false;
    assert.equal(after?.answered, before.answered);
    return true;
  },
  'what was withdrawn is settled only after it was settling anew, and never has bytes to send': ({ before, after }) => {
    if (after?.state === 'withdrawn') assert.ok(after.rawTransaction === undefined || after.rawTransaction === '0x');
    if (before?.state !== 'withdrawn' || after?.state === 'withdrawn') return false;
    assert.equal(after?.state, 'settling');
    return true;
  },
  'delivered comes only after settled': ({ after, reached }) => {
    if (after?.state !== 'delivered') return false;
    assert.ok(reached.has('settled'));
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
  'a lease that runs never ends earlier by being renewed for longer': ({ call, now, before, after, outcome }) => {
    if (call.kind !== 'renew' || outcome?.answer !== true || before === undefined) return false;
    assert.ok(before.leaseUntil > now);
    if (now + call.command.leaseMs >= before.leaseUntil) assert.ok((after?.leaseUntil ?? 0) >= before.leaseUntil);
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
    for (const drawn of fc.sample(walks, RUNS)) walk(drawn, (step) => void steps.push(step));
  });

  for (const [name, rule] of Object.entries(RULES))
    it(name, (t) => {
      let appliedTo = 0;
      try {
        appliedTo = steps.filter(rule).length;
      } catch (broken) {
        // Another draw shows the shortest walk that breaks the rule, where it finds one.
        fc.assert(
          fc.property(walks, (drawn) => void walk(drawn, (step) => void rule(step))),
          { numRuns: RUNS },
        );
        throw broken;
      }
      t.diagnostic(`${steps.length} steps, ${appliedTo} of them under the rule`);
      assert.ok(appliedTo >= LEAST_APPLIED, `the rule applied to ${appliedTo} steps only`);
    });
});
