import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRecord, LedgerCorruption } from '../../../src/payments/ledger/invariants.ts';
import type { Evidence, PaymentFacts, PaymentState } from '../../../src/payments/ledger/ledger.ts';
import { advance, note } from '../../../src/payments/ledger/table.ts';
import { TRANSITIONS } from '../../../src/payments/ledger/transitions.ts';
import { holder, inState, move, NOW, TRANSACTION } from './samples.ts';

const STATES = Object.keys(TRANSITIONS) as PaymentState[];

describe('evidence', () => {
  const PAID: readonly Evidence[] = ['logs', 'claim'];
  const WORTHLESS: readonly Evidence[] = ['expired', 'elsewhere', 'unsent', 'unclaimed'];
  const everything = { transaction: TRANSACTION, reason: 'because' };
  const settling = (facts: PaymentFacts, to: PaymentState = 'settled') => {
    const record = inState('settling', { transaction: TRANSACTION });
    return () => advance(record, move(record, to, { facts }), NOW);
  };

  for (const evidence of [...PAID, ...WORTHLESS]) {
    const paid = PAID.includes(evidence);
    it(`${evidence} makes a payment ${paid ? 'settled, never refused' : 'refused, never settled'}`, () => {
      const [lawful, unlawful] = paid ? (['settled', 'refused'] as const) : (['refused', 'settled'] as const);
      assert.equal(settling({ ...everything, evidence }, lawful)().answer.kind, 'done');
      assert.throws(settling({ ...everything, evidence }, unlawful), LedgerCorruption);
    });
    it(`${evidence} comes with no other change, and with no note`, () => {
      const record = inState('settled');
      for (const to of ['delivered', 'undelivered'] as const)
        assert.throws(() => advance(record, move(record, to, { facts: { evidence } }), NOW), LedgerCorruption);
      assert.throws(() => note(record, { ...holder(record), facts: { evidence }, leaseMs: 0 }, NOW), LedgerCorruption);
    });
    it(`${evidence} of a record that was read belongs to its state`, () => {
      for (const state of STATES) {
        const allowed =
          state === 'refused'
            ? !paid
            : paid && !['reserved', 'worked', 'settling', 'withdrawn', 'unresolved'].includes(state);
        const record = { ...inState(state), evidence };
        if (allowed) assert.equal(assertRecord(record), record);
        else assert.throws(() => assertRecord(record), LedgerCorruption);
      }
    });
  }

  it('the decision of an operator makes a payment settled or refused, out of the state that waits for it', () => {
    for (const to of ['settled', 'refused'] as const) {
      const record = inState('unresolved');
      const facts = { evidence: 'operator', reason: 'settlement_undecided' } as const;
      const { answer } = advance(record, move(record, to, { facts }), NOW);
      assert.partialDeepStrictEqual(answer, { kind: 'done', record: { state: to, evidence: 'operator' } });
      assert.throws(() => note(record, { ...holder(record), facts, leaseMs: 0 }, NOW), LedgerCorruption);
    }
  });
  it('what waits for an operator keeps what it bought, and not the bytes that could be sent', () => {
    const record = inState('settling', { transaction: TRANSACTION, rawTransaction: '0x02f8' });
    const { record: after } = advance(record, move(record, 'unresolved'), NOW);
    const { state, proof, backendRequest, rawTransaction, dueAt } = after ?? {};
    assert.deepEqual(
      [state, proof, backendRequest, rawTransaction, dueAt],
      ['unresolved', record.proof, record.backendRequest, '0x', 0],
    );
  });
  it('no final state is accepted without it', () => {
    assert.throws(settling(everything), LedgerCorruption);
    assert.throws(settling(everything, 'refused'), LedgerCorruption);
  });
  it('settled names its transaction with the change, also when one was written ahead', () => {
    assert.throws(settling({ evidence: 'logs' }), LedgerCorruption);
    assert.throws(settling({ evidence: 'claim' }), LedgerCorruption);
  });
  it('the decision of an operator needs no transaction', () => {
    const record = inState('settling');
    const { answer } = advance(record, move(record, 'settled', { facts: { evidence: 'operator' } }), NOW);
    assert.partialDeepStrictEqual(answer, { kind: 'done', record: { evidence: 'operator', settledAt: NOW } });
  });
  it('refused names its reason with the change', () => {
    assert.throws(settling({ evidence: 'expired' }, 'refused'), LedgerCorruption);
  });
  it('withdrawn names its reason with the change, keeps the hash and forgets the bytes that could be sent', () => {
    const record = inState('settling', { transaction: TRANSACTION, rawTransaction: '0x02f8' });
    assert.throws(() => advance(record, move(record, 'withdrawn', { facts: {} }), NOW), LedgerCorruption);
    const { record: after } = advance(record, move(record, 'withdrawn'), NOW);
    assert.partialDeepStrictEqual(after, { state: 'withdrawn', transaction: TRANSACTION, rawTransaction: '0x' });
    assert.equal(after?.proof, record.proof);
  });
});
