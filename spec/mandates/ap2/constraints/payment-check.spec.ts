import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { keccak256 } from '../../../../src/crypto/keccak.ts';
import type { PurchasePayment } from '../../../../src/mandates/ap2/purchase.ts';
import { amountRange, reference } from '../../../../tools/mandate/maker/constraints.ts';
import { type Changes, type Hand, withClaims, withMandate } from '../../../support/ap2/hands.ts';
import { createMint } from '../../../support/ap2/mint.ts';
import { hashed } from '../../../support/ap2/oracle.ts';
import { freePurchase, MERCHANT, profileWith, purchaseWith } from '../../../support/ap2/purchase.ts';
import { verifierFor } from '../../../support/ap2/verifier.ts';
import { type Row, resultOf, rows } from '../table.ts';

const mint = createMint();
const verify = verifierFor(mint);
const PAYMENT = purchaseWith().payment as PurchasePayment;
const PAYER = PAYMENT.payer ?? '';
const INSTRUMENT = { type: 'x402', id: `${PAYMENT.network}:${PAYER}` };
const AMOUNT = { amount: 10_000, currency: 'USDC' };

function closedBy(closedPayment: Hand): () => string {
  return () => mint.autonomous({ payment: true, hands: { closedPayment } }).header;
}

/** Other members of the closed payment mandate. */
function closed(changes: Changes): () => string {
  return closedBy(withMandate(changes));
}

/** Other members of the open one. */
function opened(changes: Changes): () => string {
  return () => mint.autonomous({ payment: true, hands: { openPayment: withMandate(changes) } }).header;
}

function instrument(changes: Changes): () => string {
  return closed({ payment_instrument: { ...INSTRUMENT, ...changes } as typeof INSTRUMENT });
}

function paid(changes: Partial<PurchasePayment>) {
  return { purchase: purchaseWith({ payment: { ...PAYMENT, ...changes } }) };
}

/** Under an open mandate that refers to this. */
function referring(to: (openCheckoutHash: string) => string): () => string {
  const paymentConstraints = (hash: string) => [amountRange('USDC', 10_000), reference(to(hash))];
  return () => mint.autonomous({ payment: true, paymentConstraints }).header;
}

describe('the payment mandate (ap2 7.6, step 14)', () => {
  rows(verify, 'payment', [
    ['for this checkout and this payer', closed({}), 'accepted'],
    ['signed by the provider for this very purchase', () => mint.direct({ payment: true }).header, 'accepted'],
    ['with another nonce', closedBy(withClaims({ nonce: 'x'.repeat(22) })), 'nonce_mismatch'],
    ['for another checkout', closed({ transaction_id: hashed('another') }), 'payment_binding_mismatch'],
    ['under one for another checkout mandate', referring(() => hashed('another')), 'payment_binding_mismatch'],
    [
      'under one for this and another',
      () =>
        mint.autonomous({
          payment: true,
          paymentConstraints: (hash) => [reference(hash), reference(hashed('another'))],
        }).header,
      'payment_binding_mismatch',
    ],
    [
      'under one that refers to nothing',
      () =>
        mint.autonomous({
          payment: true,
          paymentConstraints: () => [amountRange('USDC', 10_000)],
        }).header,
      'claims_invalid',
    ],
    ['to another merchant', closed({ payee: { ...MERCHANT, id: 'other' } }), 'payee_mismatch'],
    ['to our id under another name', closed({ payee: { id: MERCHANT.id, name: 'Other' } }), 'accepted'],
    ['in another currency', closed({ payment_amount: { ...AMOUNT, currency: 'USD' } }), 'currency_mismatch'],
    ['of one unit less', closed({ payment_amount: { ...AMOUNT, amount: 9_999 } }), 'amount_mismatch'],
    ['of one unit more', closed({ payment_amount: { ...AMOUNT, amount: 10_001 } }), 'amount_mismatch'],
    ['with a card', instrument({ type: 'card' }), 'payment_method_mismatch'],
    ['from an account on another network', instrument({ id: `eip155:1:${PAYER}` }), 'payment_method_mismatch'],
    ['from an account that names no network', instrument({ id: PAYER }), 'payment_method_mismatch'],
    ['from another account', instrument({ id: `${PAYMENT.network}:0x${'1'.repeat(40)}` }), 'payer_mismatch'],
    ['from an account and more', instrument({ id: `${INSTRUMENT.id}0` }), 'payer_mismatch'],
    [
      'from the account in capitals',
      instrument({ id: `${PAYMENT.network}:${PAYER.toUpperCase().replace('X', 'x')}` }),
      'accepted',
    ],
    ['paid by another account', closed({}), 'payer_mismatch', paid({ payer: `0x${'2'.repeat(40)}` })],
    ['paid by an unknown address', closed({}), 'payer_mismatch', paid({ payer: undefined })],
    ['for a call that costs nothing', forNothing, 'payment_method_mismatch', { purchase: freePurchase() }],
    ['with data about risk', closed({ risk_data: { score: 1 } }), 'accepted'],
    ['to be made today', closed({ execution_date: '2026-11-20' }), 'accepted'],
    ['to be made within the skew', closed({ execution_date: '2026-11-20T12:01:00Z' }), 'accepted'],
    ['to be made after it', closed({ execution_date: '2026-11-20T12:01:01Z' }), 'not_yet_valid'],
    ['to be made tomorrow', closed({ execution_date: '2026-11-21' }), 'not_yet_valid'],
    ['under the amount that was fixed', opened({ payment_amount: AMOUNT }), 'accepted'],
    ['under another amount', opened({ payment_amount: { ...AMOUNT, amount: 9_999 } }), 'preset_mismatch'],
    ['under another payee', opened({ payee: { ...MERCHANT, name: 'Other' } }), 'preset_mismatch'],
    [
      'under the instrument that was fixed',
      opened({ payment_instrument: { id: INSTRUMENT.id, type: 'x402' } }),
      'accepted',
    ],
    ['under another instrument', opened({ payment_instrument: { ...INSTRUMENT, type: 'card' } }), 'preset_mismatch'],
    ['under another checkout', opened({ transaction_id: hashed('another') }), 'preset_mismatch'],
    [
      'under a service that it lacks',
      opened({ pisp: { legal_name: 'P', brand_name: 'P', domain_name: 'P' } }),
      'preset_mismatch',
    ],
    ['under a date that it lacks', opened({ execution_date: '2026-11-20' }), 'preset_mismatch'],
    ['under data about risk that it lacks', opened({ risk_data: {} }), 'preset_mismatch'],
  ] satisfies readonly Row[]);

  it('may be demanded', async () => {
    const profile = profileWith({ policy: { paymentMandate: 'required', bindPaymentNonce: false } });
    const demanding = verifierFor(mint, { profile });
    assert.deepEqual(await resultOf(demanding(mint.autonomous().header)), ['payment_mandate_required', 'payment']);
    assert.deepEqual(await resultOf(demanding(mint.autonomous({ payment: true }).header)), ['accepted']);
    const purchase = freePurchase();
    assert.deepEqual(await resultOf(demanding(mint.autonomous({ purchase }).header, { purchase })), ['accepted']);
  });

  it('needs a checkout mandate that was given together with it', async () => {
    const made = mint.autonomous({ payment: true });
    const alone = mint.direct({
      checkoutJwt: made.checkoutJwt,
      envelope: (envelope) => ({ ...envelope, payment_mandate: made.paymentMandate ?? '' }),
    });
    assert.deepEqual(await resultOf(verify(alone.header)), ['payment_binding_mismatch', 'payment']);
  });

  it('is of its own family', async () => {
    const { header } = mint.autonomous({
      payment: true,
      envelope: (envelope) => ({ ...envelope, payment_mandate: envelope['payload'] ?? '' }),
    });
    assert.deepEqual(await resultOf(verify(header)), ['wrong_mandate_type', 'payment']);
  });

  it('is what the nonce of the payment is made of, where the merchant demands that', async () => {
    const profile = profileWith({ policy: { paymentMandate: 'optional', bindPaymentNonce: true } });
    const binding = verifierFor(mint, { profile });
    const made = mint.autonomous({ payment: true });
    const bound = Buffer.from(keccak256(Buffer.from(made.paymentMandate ?? ''))).toString('hex');
    const withNonce = (nonce: string | undefined) => resultOf(binding(made.header, paid({ nonce })));
    assert.deepEqual(await withNonce(`0x${bound}`), ['accepted']);
    assert.deepEqual(await withNonce(`0x${bound.toUpperCase()}`), ['accepted']);
    assert.deepEqual(await withNonce(PAYMENT.nonce), ['payment_binding_mismatch', 'payment']);
    assert.deepEqual(await withNonce(bound), ['payment_binding_mismatch', 'payment']);
    assert.deepEqual(await withNonce(undefined), ['payment_binding_mismatch', 'payment']);
    assert.deepEqual(await resultOf(verify(made.header, paid({ nonce: undefined }))), ['accepted']);
  });

  it('is checked after the checkout mandate, whose faults come first', async () => {
    const { header } = mint.autonomous({
      payment: true,
      constraints: [],
      hands: { closedPayment: withMandate({ payee: undefined }) },
    });
    assert.deepEqual(await resultOf(verify(header)), ['claims_invalid', 'checkout']);
  });
});

/** A payment mandate beside a checkout that costs nothing. */
function forNothing(): string {
  const checkoutJwt = mint.checkout({ purchase: freePurchase() }).jwt;
  return mint.autonomous({
    checkoutJwt,
    payment: true,
    hands: { closedPayment: withMandate({ payment_amount: { amount: 0, currency: 'USDC' } }) },
  }).header;
}
