import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkInstrument, readMoment, sameInstrument } from '../../../../src/mandates/ap2/payment-mandate.ts';
import { purchaseWith } from '../../../support/ap2/purchase.ts';
import { refusalOf } from '../refusal.ts';

const at = (text: string) => Date.parse(text);

describe('execution dates (ISO 8601)', () => {
  it('are whole days of UTC without a time', () => {
    assert.deepEqual(readMoment('2028-02-29'), {
      first: at('2028-02-29T00:00Z'),
      last: at('2028-02-29T23:59:59.999Z'),
    });
  });

  for (const text of [
    '2026-11-20T12:00Z',
    '2026-11-20T12:00:00Z',
    '2026-11-20T12:00:00.123Z',
    '2026-11-20T23:30:00-05:00',
  ])
    it(`are moments with one: ${text}`, () => assert.deepEqual(readMoment(text), { first: at(text), last: at(text) }));

  for (const text of [
    ...['', 'now', '2026', '2026-11', '20261120', '2026-11-20T12:00:00', '2026-11-20 12:00:00Z', '2026-11-20T12Z'],
    ...['2026-02-30', '2026-02-30T12:00:00Z', '2027-02-29', '2026-13-01', '2026-11-20T25:00:00Z', '1795176000'],
    ...['Nov 20, 2026', '2026-11-20T12:00:00+0100', '2026-11-20Z', ' 2026-11-20'],
  ])
    it(`are nothing else: ${JSON.stringify(text)}`, () =>
      assert.equal(
        refusalOf(() => readMoment(text)),
        'claims_invalid',
      ));
});

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
