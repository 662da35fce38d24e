import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkTimes, earliestEnd, isTime, LAST_TIME } from '../../../src/mandates/ap2/readers.ts';
import { refusalOf } from './cases.ts';

const NOW = 1_000;
const SKEW = 60;
const refusal = (...documents: readonly Readonly<Record<string, number>>[]): string =>
  refusalOf(() => checkTimes(documents, NOW, SKEW));

describe('a time', () => {
  it('is whole seconds from 1970 to the end of 9999', () => {
    for (const value of [0, 1, NOW, LAST_TIME]) assert.equal(isTime(value), true, `${value}`);
    for (const value of [-1, 0.5, LAST_TIME + 1, 2 ** 53, Number.NaN, '1', null, undefined, [1]])
      assert.equal(isTime(value), false, `${value}`);
  });
});

describe('a document', () => {
  it('has ended at its end and the skew, not a second before', () => {
    assert.equal(refusal({ exp: NOW - SKEW + 1 }), 'none');
    assert.equal(refusal({ exp: NOW - SKEW }), 'expired');
  });
  it('has not begun before its beginning less the skew', () => {
    for (const name of ['iat', 'nbf']) {
      assert.equal(refusal({ [name]: NOW + SKEW }), 'none', name);
      assert.equal(refusal({ [name]: NOW + SKEW + 1 }), 'not_yet_valid', name);
    }
  });
  it('ends with the first of several', () => {
    assert.equal(earliestEnd([{ exp: 5 }, {}, { exp: 3 }, { exp: 4 }]), 3);
    assert.equal(checkTimes([{ exp: 2_000 }, { exp: 1_500 }], NOW, SKEW), 1_500);
    assert.equal(earliestEnd([{}]), Number.POSITIVE_INFINITY);
  });
  it('is refused for a wrong time before a past one, and for a past one before one to come', () => {
    assert.equal(refusal({ exp: 1 }, { nbf: 1.5 }), 'claims_invalid');
    assert.equal(refusal({ nbf: 9_999 }, { exp: 1 }), 'expired');
  });
});
