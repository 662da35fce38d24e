import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { refusalSentence } from '../../../src/pipeline/steps/payment-required.ts';

describe('what a buyer is told about a refusal', () => {
  it('the token, and what would be right', () => {
    assert.equal(
      refusalSentence('invalid_scheme'),
      'The payment proof was refused: invalid_scheme (scheme must be exact).',
    );
  });
  it('of a reason that we do not know, the token alone', () => {
    assert.equal(refusalSentence('sanctioned_payer'), 'The payment proof was refused: sanctioned_payer.');
    assert.equal(refusalSentence('constructor'), 'The payment proof was refused: constructor.');
  });
});
