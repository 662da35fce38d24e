import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LedgerCorruption, MAX_LEASE_MS } from '../../../src/payments/ledger/invariants.ts';
import type { PaymentRecord, PaymentState } from '../../../src/payments/ledger/ledger.ts';
import { advance, discard, FORGOTTEN_IN, note, reserve } from '../../../src/payments/ledger/table.ts';
import { isFinal, TRANSITIONS } from '../../../src/payments/ledger/transitions.ts';
import { ask, holder, inState, LEASE_MS, move, NOW, sha256, TRANSACTION, terms } from './samples.ts';

const STATES = Object.keys(TRANSITIONS) as PaymentState[];
const LAWFUL = STATES.flatMap((from) => TRANSITIONS[from].map((to) => `${from} -> ${to}`));

describe('the table of payment states', () => {
  it('is the one of the contract', () => {
    assert.deepEqual(LAWFUL, [
      'reserved -> worked',
      'reserved -> settling',
      'worked -> settling',
      'worked -> refused',
      'settling -> settled',
      'settling -> refused',
      'settling -> withdrawn',
      'settling -> unresolved',
      'unresolved -> settled',
      'unresolved -> refused',
      'withdrawn -> settling',
      'settled -> delivered',
      'settled -> undelivered',
      'undelivered -> delivered',
      'undelivered -> undelivered',
      'undelivered -> refundDue',
      'refundDue -> refunding',
      'refundDue -> refunded',
      'refunding -> refunding',
      'refunding -> refunded',
    ]);
  });

  for (const from of STATES)
    for (const to of STATES)
      it(`${from} -> ${to} is ${LAWFUL.includes(`${from} -> ${to}`) ? 'done' : 'illegal and changes nothing'}`, () => {
        const record = inState(from);
        const { answer, record: after, changed } = advance(record, move(record, to), NOW);
        if (LAWFUL.includes(`${from} -> ${to}`)) {
          assert.deepEqual([answer.kind, after?.state, changed], ['done', to, true]);
        } else {
          assert.deepEqual(answer, { kind: 'illegal', state: from });
          assert.deepEqual([after === record, changed], [true, false]);
        }
      });

  for (const state of ['delivered', 'refused', 'refundDue', 'refunding', 'refunded'] as const)
    it(`${state} has forgotten proof and request, which nothing reads any more`, () => {
      assert.deepEqual(Object.keys(FORGOTTEN_IN[state] ?? {}), ['proof', 'backendRequest', 'rawTransaction']);
    });

  it('a change to settled takes its time from the store', () => {
    const record = inState('settling');
    assert.equal(advance(record, move(record, 'settled'), NOW).record?.settledAt, NOW);
  });

  for (const [from, to] of [
    ['settling', 'refused'],
    ['settled', 'delivered'],
    ['undelivered', 'refundDue'],
    ['refundDue', 'refunding'],
    ['refunding', 'refunded'],
  ] as const)
    it(`${to} gives the lease up and is never due again, whatever was asked for`, () => {
      const record = inState(from);
      const { record: after } = advance(record, { ...move(record, to), leaseMs: 1_000, againMs: 1_000 }, NOW);
      assert.partialDeepStrictEqual(after, { leaseUntil: 0, dueAt: 0 });
    });
});

describe('reserving an authorization', () => {
  it('the first caller is granted it, under fence 1', () => {
    const { answer, record } = reserve(undefined, ask('buyer'), NOW);
    assert.equal(answer.kind, 'granted');
    assert.partialDeepStrictEqual(record, { state: 'reserved', fence: 1, leaseUntil: NOW + LEASE_MS });
  });

  it('a verified proof begins as settling, until too little of its window is left', () => {
    const verified = { untilMs: NOW + 1, events: [] };
    const asked = { ...ask('buyer'), verified };
    assert.equal(reserve(undefined, asked, NOW).record?.state, 'settling');
    assert.equal(reserve(undefined, asked, NOW + 1).record?.state, 'reserved');
    const left = inState('reserved', { leaseUntil: 0 });
    assert.equal(reserve(left, asked, NOW).record?.state, 'reserved', 'a take-over changes no state');
  });

  it('terms are fixed then: a later caller finds the first request and the first receipt', () => {
    const record = inState('undelivered', { leaseUntil: 0 });
    const later = ask('other', { requestId: 'req_later' });
    const { answer } = reserve(record, later, NOW);
    const { requestId, receiptId } = record;
    assert.partialDeepStrictEqual(answer, { kind: 'granted', record: { requestId, receiptId } });
  });

  it('terms carry nothing but terms', () => {
    const wide = { ...terms('one'), transaction: TRANSACTION, state: 'settled' };
    const { record } = reserve(undefined, { terms: wide, owner: 'buyer', leaseMs: 1 }, NOW);
    assert.deepEqual([record?.state, record?.transaction], ['reserved', undefined]);
  });

  for (const state of STATES) {
    it(`${state}: an authorization that bought something else is used`, () => {
      const { answer, changed } = reserve(inState(state), ask('other', { bind: sha256('something else') }), NOW);
      assert.deepEqual([answer.kind, changed], ['conflict', false]);
    });
    const open = !isFinal(state);
    it(`${state}: another owner learns ${open ? 'how long the lease still lasts' : 'that it ended'}`, () => {
      const { answer } = reserve(inState(state), ask('other'), NOW + 1);
      if (open) assert.partialDeepStrictEqual(answer, { kind: 'in_flight', leaseLeftMs: LEASE_MS - 1 });
      else assert.equal(answer.kind, 'completed');
    });
    if (!open) continue;
    it(`${state}: the same owner is granted it again and nothing changes`, () => {
      const record = inState(state);
      assert.deepEqual(reserve(record, ask('buyer'), NOW), {
        answer: { kind: 'granted', record },
        record,
        changed: false,
      });
    });
    it(`${state}: whose lease ended is taken over in that state, under the next fence`, () => {
      const { answer } = reserve(inState(state), ask('other'), NOW + LEASE_MS);
      assert.partialDeepStrictEqual(answer, { kind: 'granted', record: { state, owner: 'other', fence: 2 } });
    });
    it(`${state}: a lease that ran out counts as a failed delivery only after settlement; one given up never does`, () => {
      const paid = state === 'settled' || state === 'undelivered';
      assert.equal(reserve(inState(state), ask('other'), NOW + LEASE_MS).record?.tries, paid ? 1 : 0);
      assert.equal(reserve(inState(state, { leaseUntil: 0 }), ask('other'), NOW).record?.tries, 0);
    });
  }

  for (const [what, changes] of Object.entries({
    'a key digest that is the key itself': { keyDigest: 'key' },
    'a pay id that is no digest': { payId: 'ABC' },
    'a bind that is no digest': { bind: '' },
    'a receipt id without time': { receiptId: 'receipt_1' },
    'an amount with a point in base units': { units: '0.01' },
    'a validity of 0': { validBefore: 0 },
    'no payee': { payee: '' },
  }))
    it(`terms with ${what} are refused before anything is written`, () => {
      assert.throws(() => reserve(undefined, ask('buyer', changes), NOW), LedgerCorruption);
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
      for (const other of [{ owner: 'other', fence: 2 }, { fence: 2 }, { owner: 'other' }])
        assert.deepEqual(command({ ...record, ...other }).answer, { kind: 'fenced' });
    });
  }

  for (const state of STATES) {
    it(`${state}: ${state === 'reserved' ? 'may be discarded' : 'must not be discarded'}`, () => {
      const record = inState(state);
      const { answer } = discard(record, holder(record));
      assert.deepEqual(answer, state === 'reserved' ? { kind: 'gone' } : { kind: 'illegal', state });
    });
    const provable = !isFinal(state) && !['reserved', 'worked', 'withdrawn'].includes(state);
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
    assert.deepEqual([first.tries, second?.tries], [1, 2]);
  });
});
