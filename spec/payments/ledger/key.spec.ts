import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LedgerCorruption } from '../../../src/payments/ledger/invariants.ts';
import type { PaymentState } from '../../../src/payments/ledger/ledger.ts';
import { reserve } from '../../../src/payments/ledger/table.ts';
import { TRANSITIONS } from '../../../src/payments/ledger/transitions.ts';
import { ask, inState, NOW, sha256 } from './samples.ts';

const STATES = Object.keys(TRANSITIONS) as PaymentState[];

describe('a record that was reserved with a key', () => {
  const key = sha256('key');
  const asked = (keyDigest?: string) => ask('other', keyDigest === undefined ? {} : { keyDigest });
  const guarded = (state: PaymentState) => inState(state, { keyDigest: key, leaseUntil: 0 });

  for (const state of STATES.filter((one) => TRANSITIONS[one].length > 0)) {
    it(`${state}: only who brings the first key runs it`, () => {
      const record = guarded(state);
      for (const strange of [undefined, sha256('other key')])
        assert.deepEqual(reserve(record, asked(strange), NOW), {
          answer: { kind: 'guarded', record },
          record,
          changed: false,
        });
      assert.equal(reserve(record, asked(key), NOW).answer.kind, 'run');
    });
    it(`${state}: whose first call had none is run by anyone, and gets no key by that`, () => {
      const { answer } = reserve(inState(state, { leaseUntil: 0 }), asked(key), NOW);
      assert.equal(answer.kind, 'run');
      assert.equal(answer.record.keyDigest, undefined);
    });
  }
  it('another purchase, and an end, are told before it', () => {
    const otherBind = ask('other', { bind: sha256('something else') });
    assert.equal(reserve(guarded('settled'), otherBind, NOW).answer.kind, 'used');
    assert.equal(reserve(inState('delivered', { keyDigest: key }), asked(), NOW).answer.kind, 'ended');
  });
  it('is kept with the first reservation', () => {
    assert.equal(reserve(undefined, asked(key), NOW).record?.keyDigest, key);
  });
});

describe('a record that was reserved with a hint', () => {
  const hint = sha256('hint');

  for (const state of STATES.filter((one) => TRANSITIONS[one].length > 0))
    it(`${state}: is run by anyone, and keeps the hint that came first`, () => {
      for (const changes of [{}, { hintDigest: sha256('other hint') }, { keyDigest: sha256('key') }]) {
        const { answer } = reserve(inState(state, { hintDigest: hint, leaseUntil: 0 }), ask('other', changes), NOW);
        assert.equal(answer.kind, 'run');
        assert.deepEqual([answer.record.hintDigest, answer.record.keyDigest], [hint, undefined]);
      }
    });

  it('has no key: both together are refused before anything is written', () => {
    const both = ask('buyer', { hintDigest: hint, keyDigest: sha256('key') });
    assert.throws(() => reserve(undefined, both, NOW), LedgerCorruption);
  });

  it('keeps a digest and not the hint itself', () => {
    assert.throws(() => reserve(undefined, ask('buyer', { hintDigest: 'a2a:1' }), NOW), LedgerCorruption);
  });
});
