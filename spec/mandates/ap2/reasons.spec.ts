import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { REASONS, reasonOfRefusal } from '../../../src/mandates/ap2/reasons.ts';

describe('the reason in an error about a refused mandate', () => {
  it('is any of the list, with its own code', () => {
    for (const [reason, { code }] of Object.entries(REASONS)) assert.equal(reasonOfRefusal(code, reason), reason);
  });

  it('is none of the list with a code of something else: other errors have reasons of their own', () => {
    for (const reason of Object.keys(REASONS)) assert.equal(reasonOfRefusal('INPUT_INVALID', reason), undefined);
    assert.equal(reasonOfRefusal('AUTHORIZATION_INVALID', 'replayed'), undefined);
  });

  it('is nothing that is not in the list, whatever it is called', () => {
    for (const text of [undefined, '', 'mandates_differ', 'toString', '__proto__', 'Expired'])
      assert.equal(reasonOfRefusal('AUTHORIZATION_INVALID', text), undefined);
  });
});
