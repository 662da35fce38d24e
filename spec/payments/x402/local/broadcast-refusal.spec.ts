import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RpcRefusal } from '../../../../src/payments/x402/chain/rpc.ts';
import { type Exclusion, exclusionOf, isKnown } from '../../../../src/payments/x402/local/sent-transactions.ts';

const refusal = (message: string): RpcRefusal => new RpcRefusal('eth_sendRawTransaction', -32_000, message, false);

describe('what a node says to a broadcast', () => {
  const excluded: readonly (readonly [message: string, exclusion: Exclusion])[] = [
    [
      'insufficient funds for gas * price + value: balance 0, tx cost 480000000000000, overshot 480000000000000',
      'unfunded',
    ],
    ['insufficient funds for gas * price + value: balance 9, queued cost 8, tx cost 4, overshot 3', 'unfunded'],
    ['Insufficient funds for gas * price + value', 'unfunded'],
    ['insufficient funds for l1Cost + gas * price + value', 'unfunded'],
    ['InsufficientFunds, Account balance: 0, cumulative cost: 1', 'unfunded'],
    ['Upfront cost exceeds account balance', 'unfunded'],
    ['intrinsic gas too low: gas 21000, minimum needed 53000', 'short_of_gas'],
    ['Intrinsic gas exceeds gas limit', 'short_of_gas'],
    ['insufficient gas for floor data gas cost: gas 21000, minimum needed 26000', 'short_of_gas'],
    ['nonce too low: next nonce 8, tx nonce 7', 'outrun'],
    ['OldNonce, Current nonce: 8, nonce of rejected tx: 7', 'outrun'],
  ];
  for (const [message, exclusion] of excluded)
    it(`excludes it: ${message}`, () => assert.equal(exclusionOf(refusal(message)), exclusion));

  for (const message of [
    'already known',
    'AlreadyKnown',
    'transaction already imported',
    'replacement transaction underpriced',
    'transaction underpriced',
    'max fee per gas less than block base fee',
    'txpool is full',
    'nonce too high',
    'rate limit exceeded',
    'internal error',
    '',
  ])
    it(`leaves it open: ${message === '' ? 'nothing' : message}`, () =>
      assert.equal(exclusionOf(refusal(message)), undefined));

  it('leaves it open where no answer came, whatever the error says', () => {
    assert.equal(exclusionOf(new Error('insufficient funds for gas * price + value')), undefined);
    assert.equal(isKnown(new Error('already known')), false);
    assert.equal(isKnown(refusal('already known')), true);
  });
});
