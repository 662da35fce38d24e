import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import fc from 'fast-check';
import { assertRecord } from '../../../src/payments/ledger/invariants.ts';
import type { PaymentRecord, PaymentState } from '../../../src/payments/ledger/ledger.ts';
import { isFinal } from '../../../src/payments/ledger/transitions.ts';
import { applied, type Step, walk, walks } from './walk.ts';

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
    if (outcome === undefined || (call.kind === 'renew' && call.leaseMs === 0)) return false;
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
        { kind: 'renew', claim, leaseMs: 1_000 },
        { kind: 'discard', holder: { ...claim, step }, events: [] },
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
    if (now + call.leaseMs >= before.leaseUntil) assert.ok((after?.leaseUntil ?? 0) >= before.leaseUntil);
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
