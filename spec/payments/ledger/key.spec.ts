import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentState } from '../../../src/payments/ledger/ledger.ts';
import { reserve, TRANSITIONS } from '../../../src/payments/ledger/table.ts';
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
