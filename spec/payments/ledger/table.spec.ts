import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRecord, LedgerCorruption, MAX_LEASE_MS } from '../../../src/payments/ledger/invariants.ts';
import type { PaymentRecord, PaymentState } from '../../../src/payments/ledger/ledger.ts';
import { dueAt, expiresAt, RECORD_RETENTION_MS } from '../../../src/payments/ledger/retention.ts';
import { advance, discard, note, release, reserve, TRANSITIONS } from '../../../src/payments/ledger/table.ts';
import { holder, move, sha256, TRANSACTION, terms } from './samples.ts';

const NOW = 1_800_000_000_000;
const LEASE_MS = 10_000;
const STATES = Object.keys(TRANSITIONS) as PaymentState[];
const LAWFUL = STATES.flatMap((from) => TRANSITIONS[from].map((to) => `${from} -> ${to}`));

/** A record in a state, held by `buyer` under fence 1 until NOW + 10 s. */
function inState(state: PaymentState, changes: Partial<PaymentRecord> = {}): PaymentRecord {
  const paid = !['reserved', 'settling', 'refused'].includes(state);
  const open = TRANSITIONS[state].length > 0;
  return assertRecord({
    ...terms('one'),
    state,
    owner: 'buyer',
    fence: 1,
    leaseUntil: open ? NOW + LEASE_MS : 0,
    step: 'before',
    tries: 0,
    reservedAt: NOW - 1_000,
    changedAt: NOW - 500,
    ...(paid ? { transaction: TRANSACTION, settledAt: NOW - 600 } : {}),
    ...changes,
  });
}

const ask = (owner: string, bind = terms('one').bind) => ({ terms: terms('one', { bind }), owner, leaseMs: LEASE_MS });

describe('the table of payment states', () => {
  it('is the one of the contract', () => {
    assert.deepEqual(LAWFUL, [
      'reserved -> settling',
      'settling -> settled',
      'settling -> refused',
      'settled -> delivered',
      'settled -> undelivered',
      'undelivered -> delivered',
      'undelivered -> undelivered',
      'undelivered -> refundDue',
    ]);
  });

  for (const from of STATES)
    for (const to of STATES)
      it(`${from} -> ${to} is ${LAWFUL.includes(`${from} -> ${to}`) ? 'done' : 'illegal and changes nothing'}`, () => {
        const record = inState(from);
        const { answer, record: after, changed } = advance(record, move(record, to), NOW);
        if (LAWFUL.includes(`${from} -> ${to}`)) {
          assert.equal(answer.kind, 'done');
          assert.equal(after?.state, to);
          assert.equal(changed, true);
        } else {
          assert.deepEqual(answer, { kind: 'illegal', state: from });
          assert.equal(after, record);
          assert.equal(changed, false);
        }
      });

  it('a change to settled takes its time from the store', () => {
    const record = inState('settling');
    assert.equal(advance(record, move(record, 'settled'), NOW).record?.settledAt, NOW);
  });

  it('a final state gives the lease up, whatever was asked for', () => {
    const record = inState('settled');
    assert.equal(advance(record, move(record, 'delivered'), NOW).record?.leaseUntil, 0);
  });

  it('a payment without a transaction cannot become settled', () => {
    const record = inState('settling');
    assert.throws(() => advance(record, move(record, 'settled', { facts: {} }), NOW), LedgerCorruption);
  });

  it('a transaction written ahead of its broadcast is enough to become settled', () => {
    const record = inState('settling', { transaction: TRANSACTION });
    const { answer } = advance(record, move(record, 'settled', { facts: {} }), NOW);
    assert.equal(answer.kind, 'done');
  });
});

describe('reserving an authorization', () => {
  it('the first caller runs it, under fence 1', () => {
    const { answer, record } = reserve(undefined, ask('buyer'), NOW);
    assert.equal(answer.kind, 'run');
    assert.equal(record?.state, 'reserved');
    assert.equal(record?.fence, 1);
    assert.equal(record?.leaseUntil, NOW + LEASE_MS);
  });

  it('terms are fixed then: a later caller finds the first request and the first receipt', () => {
    const record = inState('undelivered', { leaseUntil: 0 });
    const later = { ...ask('other'), terms: terms('one', { requestId: 'req_later' }) };
    const { answer } = reserve(record, later, NOW);
    assert.equal(answer.kind, 'run');
    assert.equal(answer.record.requestId, record.requestId);
    assert.equal(answer.record.receiptId, record.receiptId);
  });

  it('terms carry nothing but terms', () => {
    const wide = { ...terms('one'), transaction: TRANSACTION, state: 'settled' };
    const { record } = reserve(undefined, { terms: wide, owner: 'buyer', leaseMs: 1 }, NOW);
    assert.equal(record?.state, 'reserved');
    assert.equal(record?.transaction, undefined);
  });

  for (const state of STATES) {
    it(`${state}: an authorization that bought something else is used`, () => {
      const { answer, changed } = reserve(inState(state), ask('other', sha256('something else')), NOW);
      assert.equal(answer.kind, 'used');
      assert.equal(changed, false);
    });
    const open = TRANSITIONS[state].length > 0;
    it(`${state}: somebody else is told ${open ? 'how long the lease still lasts' : 'that it ended'}`, () => {
      const { answer } = reserve(inState(state), ask('other'), NOW + 1);
      if (open) assert.partialDeepStrictEqual(answer, { kind: 'busy', leaseLeftMs: LEASE_MS - 1 });
      else assert.equal(answer.kind, 'ended');
    });
    if (!open) continue;
    it(`${state}: the same owner runs it again and nothing changes`, () => {
      const record = inState(state);
      assert.deepEqual(reserve(record, ask('buyer'), NOW), { answer: { kind: 'run', record }, record, changed: false });
    });
    it(`${state}: whose lease ended is taken over in that state, under the next fence`, () => {
      const { answer } = reserve(inState(state), ask('other'), NOW + LEASE_MS);
      assert.equal(answer.kind, 'run');
      assert.equal(answer.record.state, state);
      assert.equal(answer.record.owner, 'other');
      assert.equal(answer.record.fence, 2);
    });
    it(`${state}: a lease that ran out counts as a failed delivery only after settlement; one given up never does`, () => {
      const paid = state === 'settled' || state === 'undelivered';
      assert.equal(reserve(inState(state), ask('other'), NOW + LEASE_MS).record?.tries, paid ? 1 : 0);
      assert.equal(reserve(inState(state, { leaseUntil: 0 }), ask('other'), NOW).record?.tries, 0);
    });
  }

  for (const [what, changes] of Object.entries({
    'a pay id that is no digest': { payId: 'ABC' },
    'a bind that is no digest': { bind: '' },
    'a receipt id without time': { receiptId: 'receipt_1' },
    'an amount with a point in base units': { units: '0.01' },
    'a validity of 0': { validBefore: 0 },
    'no payee': { payee: '' },
  }))
    it(`terms with ${what} are refused before anything is written`, () => {
      assert.throws(() => reserve(undefined, { ...ask('buyer'), terms: terms('one', changes) }, NOW), LedgerCorruption);
    });

  for (const leaseMs of [-1, 0.5, MAX_LEASE_MS + 1])
    it(`a lease of ${leaseMs} ms is a bug of the caller`, () => {
      assert.throws(() => reserve(undefined, { ...ask('buyer'), leaseMs }, NOW), RangeError);
    });
});

describe('writing under a token', () => {
  const commands = {
    advance: (record: PaymentRecord | undefined, held = inState('reserved')) =>
      advance(record, { ...move(held, 'settling'), step: 'now' }, NOW),
    note: (record: PaymentRecord | undefined, held = inState('reserved')) =>
      note(record, { ...holder(held, 'now'), facts: { reason: 'slow' }, leaseMs: 1 }, NOW),
    release: (record: PaymentRecord | undefined, held = inState('reserved')) =>
      release(record, holder(held, 'now'), NOW),
  };

  for (const [name, command] of Object.entries(commands)) {
    it(`${name}: the same step again changes nothing and is answered as done`, () => {
      const { record } = command(inState('reserved'));
      const again = command(record);
      assert.deepEqual(again, { answer: { kind: 'done', record }, record, changed: false });
    });
    it(`${name}: a record that is gone is lost`, () => {
      assert.deepEqual(command(undefined).answer, { kind: 'lost' });
    });
    it(`${name}: another owner or an older fence is fenced off, also for a step that was applied`, () => {
      const { record } = command(inState('reserved'));
      if (record === undefined) assert.fail();
      assert.deepEqual(command({ ...record, owner: 'other', fence: 2 }).answer, { kind: 'fenced' });
      assert.deepEqual(command({ ...record, fence: 2 }).answer, { kind: 'fenced' });
      assert.deepEqual(command({ ...record, owner: 'other' }).answer, { kind: 'fenced' });
    });
  }

  for (const state of STATES) {
    it(`${state}: ${state === 'reserved' ? 'may be discarded' : 'must not be discarded'}`, () => {
      const record = inState(state);
      const { answer } = discard(record, holder(record));
      assert.deepEqual(answer, state === 'reserved' ? { kind: 'gone' } : { kind: 'illegal', state });
    });
    const provable = TRANSITIONS[state].length > 0 && state !== 'reserved';
    it(`${state}: a transaction ${provable ? 'may' : 'must not'} be noted`, () => {
      const record = inState(state);
      const { answer } = note(record, { ...holder(record), facts: { transaction: TRANSACTION }, leaseMs: 1 }, NOW);
      assert.equal(answer.kind, provable ? 'done' : 'illegal');
    });
  }

  it('discarding twice is discarding once', () => {
    assert.deepEqual(discard(undefined, holder(inState('reserved'))), {
      answer: { kind: 'gone' },
      record: undefined,
      changed: false,
    });
  });

  it('every failed delivery counts', () => {
    const settled = inState('settled');
    const first = advance(settled, move(settled, 'undelivered', { leaseMs: 0 }), NOW).record ?? assert.fail();
    const second = advance(first, move(first, 'undelivered', { leaseMs: 0 }), NOW).record;
    assert.equal(first.tries, 1);
    assert.equal(second?.tries, 2);
  });
});

describe('how long a record is kept', () => {
  it('25 hours after the end of its validity or its last change, whichever is later', () => {
    const { validBefore } = terms('one', { validBefore: NOW / 1_000 + 120 });
    const early = inState('reserved', { validBefore });
    assert.equal(expiresAt(early), NOW + 120_000 + RECORD_RETENTION_MS);
    assert.equal(expiresAt({ ...early, changedAt: NOW + 500_000 }), NOW + 500_000 + RECORD_RETENTION_MS);
    assert.equal(RECORD_RETENTION_MS, 90_000_000);
  });

  it('a reconciler looks when the lease ends, at once when it was given up, and never at a final record', () => {
    assert.equal(dueAt(inState('settling')), NOW + LEASE_MS);
    assert.equal(dueAt(inState('settling', { leaseUntil: 0 })), NOW - 500);
    assert.equal(dueAt(inState('delivered')), undefined);
  });
});
