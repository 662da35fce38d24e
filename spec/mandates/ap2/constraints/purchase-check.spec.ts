import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../../../src/json/types.ts';
import type { Purchase, PurchasePayment } from '../../../../src/mandates/ap2/purchase.ts';
import { type Changes, changed, withClaims } from '../../../support/ap2/hands.ts';
import { createMint } from '../../../support/ap2/mint.ts';
import { freePurchase, profileWith, purchaseWith } from '../../../support/ap2/purchase.ts';
import { verifierFor } from '../../../support/ap2/verifier.ts';
import { type Row, resultOf, rows, withCheckoutClaims } from '../table.ts';

const mint = createMint();
const verify = verifierFor(mint);
const usual = () => mint.autonomous().header;
const PAYMENT = purchaseWith().payment as PurchasePayment;

/** The same mandate, but the call is another one. */
function called(changes: Partial<Purchase>): { readonly purchase: Purchase } {
  return { purchase: purchaseWith(changes) };
}

function paid(changes: Partial<PurchasePayment>): { readonly purchase: Purchase } {
  return called({ payment: { ...PAYMENT, ...changes } });
}

/** The call is the usual one, but the checkout has other claims. */
function checkout(change: (claims: JsonObject) => JsonObject): () => string {
  return () => mint.autonomous({ checkout: withCheckoutClaims(change) }).header;
}

function withCommerce(changes: Changes) {
  return (claims: JsonObject): JsonObject => ({
    ...claims,
    agent_commerce: changed(claims['agent_commerce'] as JsonObject, changes),
  });
}

const commerce = (changes: Changes) => checkout(withCommerce(changes));
const FREE = { purchase: freePurchase() };
const freeWith = (changes: Changes) => () =>
  mint.autonomous({ ...FREE, checkout: withCheckoutClaims(withCommerce(changes)) }).header;

describe('the call that a mandate is for (ap2 7.6, step 12)', () => {
  rows(verify, 'checkout', [
    ['another resource', usual, 'resource_mismatch', called({ resourceId: 'other_report' })],
    ['another value of the input', usual, 'input_mismatch', called({ input: { city: 'Berlin', days: 4 } })],
    ['another type of a value', usual, 'input_mismatch', called({ input: { city: 'Berlin', days: '3' } })],
    ['a member more', usual, 'input_mismatch', called({ input: { city: 'Berlin', days: 3, all: true } })],
    ['members in another order', usual, 'accepted', called({ input: { days: 3, city: 'Berlin' } })],
    ['a higher price', usual, 'amount_mismatch', called({ price: { amount: '0.02', currency: 'USDC' } })],
    [
      'another spelling of the price',
      usual,
      'amount_mismatch',
      called({ price: { amount: '0.010', currency: 'USDC' } }),
    ],
    [
      'a total that is not the price',
      checkout((c) => ({ ...c, totals: [{ type: 'total', amount: 9_999 }] })),
      'amount_mismatch',
    ],
    ['no total', checkout((claims) => changed(claims, { totals: undefined })), 'accepted'],
    [
      'another currency of the call',
      usual,
      'currency_mismatch',
      called({ price: { amount: '0.01', currency: 'USD' } }),
    ],
    ['another currency of the checkout', checkout((c) => ({ ...c, currency: 'USD' })), 'currency_mismatch'],
    ['no currency beside that of commerce', checkout((c) => changed(c, { currency: undefined })), 'accepted'],
    ['another network', usual, 'payment_method_mismatch', paid({ network: 'eip155:8453' })],
    ['another asset', usual, 'payment_method_mismatch', paid({ asset: `0x${'1'.repeat(40)}` })],
    ['another payee address', usual, 'payment_method_mismatch', paid({ payTo: `0x${'1'.repeat(40)}` })],
    [
      'addresses in capitals',
      usual,
      'accepted',
      paid({ asset: PAYMENT.asset.toUpperCase().replace('X', 'x'), payTo: PAYMENT.payTo.toUpperCase() }),
    ],
    ['another method', commerce({ payment_method: 'card' }), 'payment_method_mismatch'],
    ['no network', commerce({ network: undefined }), 'payment_method_mismatch'],
    ['no asset', commerce({ asset: undefined }), 'payment_method_mismatch'],
    ['no destination', commerce({ destination: undefined }), 'payment_method_mismatch'],
    ['a checkout for nothing, and a call that costs', commerce({ payment_method: 'none' }), 'payment_method_mismatch'],
    ['another merchant', checkout((c) => ({ ...c, merchant: { id: 'other', name: 'Test Shop' } })), 'payee_mismatch'],
    [
      'another nonce',
      () => mint.autonomous({ hands: { closed: withClaims({ nonce: 'another one of 128 bits' }) } }).header,
      'nonce_mismatch',
    ],
    ['a free call', () => mint.autonomous(FREE).header, 'accepted', FREE],
    ['a free call with a method', freeWith({ payment_method: 'x402' }), 'payment_method_mismatch', FREE],
    ['a free call with a network', freeWith({ network: 'eip155:1' }), 'payment_method_mismatch', FREE],
    ['a free call with an asset', freeWith({ asset: '0x00' }), 'payment_method_mismatch', FREE],
    ['a free call with a destination', freeWith({ destination: '0x00' }), 'payment_method_mismatch', FREE],
  ] satisfies readonly Row[]);

  it('names the first difference: each one put right shows the next', async () => {
    const wrong: Purchase = {
      resourceId: 'other_report',
      title: 'Other',
      input: {},
      price: { amount: '0.02', currency: 'USD' },
      payment: { ...PAYMENT, network: 'eip155:1' },
    };
    const right = purchaseWith();
    // Each step puts one more member right.
    const order = ['resourceId', 'input', 'price', 'payment'] as const;
    const calls = order.map((_, at) => ({
      ...wrong,
      ...Object.fromEntries(order.slice(0, at).map((name) => [name, right[name]])),
    }));
    const priced = { ...right, price: { amount: right.price.amount, currency: 'USD' }, payment: wrong.payment };
    const steps = [...calls.slice(0, 3), priced, ...calls.slice(3), right];
    const { header } = mint.autonomous({
      checkout: withCheckoutClaims((claims) => changed(claims, { merchant: undefined })),
      hands: { closed: withClaims({ nonce: 'x'.repeat(22) }) },
    });
    const results = await Promise.all(steps.map((purchase) => resultOf(verify(header, { purchase }))));
    assert.deepEqual(
      results.map(([reason]) => reason),
      [
        ...['resource_mismatch', 'input_mismatch', 'amount_mismatch', 'currency_mismatch'],
        ...['payment_method_mismatch', 'nonce_mismatch'],
      ],
    );
  });

  it('is a bug in a currency that has no minor units here', async () => {
    const purchase = purchaseWith({ price: { amount: '0.01', currency: 'EUR' } });
    const profile = profileWith({ exponents: new Map([['EUR', 2]]) });
    const { header } = mint.autonomous({ purchase, profile });
    await assert.rejects(verify(header, { purchase }), /no minor units in EUR/);
  });
});
