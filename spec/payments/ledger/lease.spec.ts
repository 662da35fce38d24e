import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_PAUSE_MS } from '../../../src/payments/ledger/invariants.ts';
import type { PaymentRecord, PaymentState } from '../../../src/payments/ledger/ledger.ts';
import { advance, note, renew, reserve } from '../../../src/payments/ledger/table.ts';
import { expiresAt, isFinal, RECORD_RETENTION_MS, TRANSITIONS } from '../../../src/payments/ledger/transitions.ts';
import { ask, holder, inState, LEASE_MS, move, NOW, terms } from './samples.ts';

const STATES = Object.keys(TRANSITIONS) as PaymentState[];

describe('renewing a lease', () => {
  const LATER = NOW + 5_000;
  const renewed = (record: PaymentRecord, claim: Partial<PaymentRecord> = {}, now = LATER) =>
    renew(record, { ...holder({ ...record, ...claim }), leaseMs: LEASE_MS }, now);

  for (const state of STATES.filter((one) => !isFinal(one))) {
    it(`${state}: it lasts from now, and nothing else changes, not even the step`, () => {
      const record = inState(state);
      const { answer, record: after, changed } = renewed(record);
      assert.equal(answer, true);
      assert.equal(changed, true);
      assert.deepEqual(after, { ...record, leaseUntil: LATER + LEASE_MS, dueAt: LATER + LEASE_MS });
    });
    const unchanged = (record: PaymentRecord, claim?: Partial<PaymentRecord>, now?: number) =>
      assert.deepEqual(renewed(record, claim, now), { answer: false, record, changed: false });
    it(`${state}: not when it is over, given up, or another's`, () => {
      unchanged(inState(state), {}, NOW + LEASE_MS);
      unchanged(inState(state, { leaseUntil: 0 }));
      unchanged(inState(state), { owner: 'other' });
      unchanged(inState(state), { fence: 2 });
    });
  }
  for (const state of STATES.filter((one) => isFinal(one)))
    it(`${state}: never`, () => {
      // Even a damaged record whose lease seems to run.
      const record = inState(state, { leaseUntil: NOW + LEASE_MS });
      assert.deepEqual(renewed(record), { answer: false, record, changed: false });
    });
  it('not when the record is gone', () => {
    const claim = { ...holder(inState('settled')), leaseMs: LEASE_MS };
    assert.deepEqual(renew(undefined, claim, NOW), { answer: false, record: undefined, changed: false });
  });
});

describe('when a reconciler should look', () => {
  const settling = inState('settling');
  const noted = (leaseMs: number, againMs?: number) =>
    note(settling, { ...holder(settling), leaseMs, ...(againMs === undefined ? {} : { againMs }) }, NOW).record;

  it('at the end of the lease, and after the pause that was asked for', () => {
    assert.equal(reserve(undefined, ask('buyer'), NOW).record?.dueAt, NOW + LEASE_MS);
    assert.equal(noted(1_000)?.dueAt, NOW + 1_000);
    assert.equal(noted(1_000, 500)?.dueAt, NOW + 1_500);
  });
  it('at once when the lease is given up, unless a pause was asked for', () => {
    assert.partialDeepStrictEqual(noted(0), { leaseUntil: 0, dueAt: NOW });
    assert.partialDeepStrictEqual(noted(0, 500), { leaseUntil: 0, dueAt: NOW + 500 });
  });
  it('a change of state sets it the same way', () => {
    const { record } = advance(settling, { ...move(settling, 'settled'), leaseMs: 0, againMs: 7 }, NOW);
    assert.partialDeepStrictEqual(record, { leaseUntil: 0, dueAt: NOW + 7 });
  });
  for (const againMs of [-1, 0.5, MAX_PAUSE_MS + 1])
    it(`a pause of ${againMs} ms is a bug of the caller`, () => {
      assert.throws(() => noted(0, againMs), RangeError);
      assert.throws(() => advance(settling, { ...move(settling, 'settled'), againMs }, NOW), RangeError);
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
});
