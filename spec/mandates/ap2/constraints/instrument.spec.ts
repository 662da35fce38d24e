import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkInstrument, sameInstrument } from '../../../../src/mandates/ap2/constraints/payment-mandate.ts';
import { purchaseWith } from '../../../support/ap2/purchase.ts';
import { refusalOf } from '../refusal.ts';

const SOLANA = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';

describe('payment instruments', () => {
  for (const [what, one, other, same] of [
    ['equal', { type: 'card', id: 'Card-1' }, { type: 'card', id: 'Card-1' }, true],
    ['of another type', { type: 'x402', id: 'eip155:1:0xab' }, { type: 'card', id: 'eip155:1:0xab' }, false],
    [
      'accounts of EIP-155 in other letters',
      { type: 'x402', id: 'eip155:1:0xab' },
      { type: 'x402', id: 'eip155:1:0xAB' },
      true,
    ],
    ['cards in other letters', { type: 'card', id: 'Card-1' }, { type: 'card', id: 'card-1' }, false],
    [
      'cards that look like accounts',
      { type: 'card', id: 'eip155:1:0xab' },
      { type: 'card', id: 'eip155:1:0xAB' },
      false,
    ],
    // Elsewhere letters in other cases are other addresses.
    [
      'accounts elsewhere in other letters',
      { type: 'x402', id: `${SOLANA}:aB` },
      { type: 'x402', id: `${SOLANA}:AB` },
      false,
    ],
  ] as const)
    it(`${same ? 'are' : 'are not'} the same: ${what}`, () => assert.equal(sameInstrument(one, other), same));

  it('outside of EIP-155 name the payer letter by letter', () => {
    const { payment } = purchaseWith();
    assert.ok(payment);
    const paid = { ...payment, network: SOLANA, payer: 'aB' };
    const pays = (id: string) => refusalOf(() => checkInstrument({ type: 'x402', id }, paid));
    assert.equal(pays(`${SOLANA}:aB`), 'none');
    assert.equal(pays(`${SOLANA}:AB`), 'payer_mismatch');
  });
});
