import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LedgerCorruption } from '../../../src/payments/ledger/invariants.ts';
import type { PaymentState, Reserve } from '../../../src/payments/ledger/ledger.ts';
import { reserve } from '../../../src/payments/ledger/table.ts';
import { isFinal, TRANSITIONS } from '../../../src/payments/ledger/transitions.ts';
import { ask, inState, NOW, sha256 } from './samples.ts';

const STATES = Object.keys(TRANSITIONS) as PaymentState[];

describe('a record that was reserved with a key', () => {
  const key = sha256('key');
  const asked = (keyDigest?: string) => ask('other', keyDigest === undefined ? {} : { keyDigest });
  const guarded = (state: PaymentState) => inState(state, { keyDigest: key, leaseUntil: 0 });

  for (const state of STATES.filter((one) => !isFinal(one))) {
    it(`${state}: only a call with the first key is granted it`, () => {
      const record = guarded(state);
      for (const strange of [undefined, sha256('other key')])
        assert.deepEqual(reserve(record, asked(strange), NOW), {
          answer: { kind: 'guarded', record },
          record,
          changed: false,
        });
      assert.equal(reserve(record, asked(key), NOW).answer.kind, 'granted');
    });
    it(`${state}: without a first key it is granted to each call, and gets no key by that`, () => {
      const { answer } = reserve(inState(state, { leaseUntil: 0 }), asked(key), NOW);
      assert.equal(answer.kind, 'granted');
      assert.equal(answer.record.keyDigest, undefined);
    });
  }
  it('another purchase and a final state are answered before it', () => {
    const otherBind = ask('other', { bind: sha256('something else') });
    assert.equal(reserve(guarded('settled'), otherBind, NOW).answer.kind, 'conflict');
    assert.equal(reserve(inState('delivered', { keyDigest: key }), asked(), NOW).answer.kind, 'completed');
  });
  it('is kept with the first reservation', () => {
    assert.equal(reserve(undefined, asked(key), NOW).record?.keyDigest, key);
  });
});

describe('a record that was reserved with a token', () => {
  const token = sha256('token');
  const id = sha256('token id');
  const issued = { kind: 'issued', id, forMs: 1_000 } as const;
  const asked = (tokenDigest?: string, more = {}) =>
    ask('other', { ...(tokenDigest === undefined ? {} : { tokenDigest }), ...more });
  const guarded = (state: PaymentState) => inState(state, { tokenDigest: token, leaseUntil: 0 });
  const madeFrom = (command: Reserve, shownFor?: string) => reserve(undefined, command, NOW, shownFor).record;

  for (const state of STATES.filter((one) => !isFinal(one))) {
    it(`${state}: only a call with that token is granted it, with a key beside it or not`, () => {
      const record = guarded(state);
      for (const strange of [asked(), asked(sha256('other')), asked(undefined, { keyDigest: token })])
        assert.deepEqual(reserve(record, strange, NOW), {
          answer: { kind: 'guarded', record },
          record,
          changed: false,
        });
      for (const own of [asked(token), asked(token, { keyDigest: sha256('key') })])
        assert.equal(reserve(record, own, NOW).answer.kind, 'granted');
    });
    it(`${state}: first wins, a token that is shown later replaces nothing`, () => {
      const { answer } = reserve(inState(state, { leaseUntil: 0 }), { ...asked(token), token: issued }, NOW);
      assert.ok(answer.kind === 'granted');
      assert.equal(answer.record.tokenDigest, undefined);
    });
    it(`${state}: an old token still opens what it paid for`, () => {
      const old = { ...asked(token), token: { kind: 'worthless' } as const };
      assert.equal(reserve(guarded(state), old, NOW).answer.kind, 'granted');
    });
  }
  it('is made by a token of ours, or by terms that were a record', () => {
    assert.equal(madeFrom({ ...asked(token), token: issued })?.tokenDigest, token);
    assert.equal(madeFrom(asked(token))?.tokenDigest, token);
  });
  it('is not made by a worthless token, nor by one that another payment showed first', () => {
    assert.equal(madeFrom({ ...asked(token), token: { kind: 'worthless' } })?.tokenDigest, undefined);
    assert.equal(madeFrom({ ...asked(token), token: issued }, sha256('other payment'))?.tokenDigest, undefined);
    assert.equal(madeFrom({ ...asked(token), token: issued }, asked().terms.payId)?.tokenDigest, token);
  });
  it('is not made beside a key, which alone counts', () => {
    const made = madeFrom({ ...asked(token, { keyDigest: sha256('key') }), token: issued });
    assert.deepEqual([made?.keyDigest, made?.tokenDigest], [sha256('key'), undefined]);
  });
  it('keeps a digest and not the token itself', () => {
    assert.throws(() => reserve(undefined, asked('A'.repeat(72)), NOW), LedgerCorruption);
  });
});
