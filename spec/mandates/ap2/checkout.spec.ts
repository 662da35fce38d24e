import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../../src/json/json.ts';
import { createIssuedCheckouts } from '../../../src/mandates/ap2/checkout.ts';
import type { Purchase, PurchasePayment } from '../../../src/mandates/ap2/purchase.ts';
import { type Changes, changed, withClaims, withMandate } from '../../support/ap2/hands.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { hashed } from '../../support/ap2/oracle.ts';
import { freePurchase, NOW, profileWith, purchaseWith } from '../../support/ap2/purchase.ts';
import { verifierFor } from '../../support/ap2/verifier.ts';
import { type Row, resultOf, rows, withCheckoutClaims } from './cases.ts';

const mint = createMint();
const verify = verifierFor(mint);

function changedBy(change: (claims: JsonObject) => JsonObject): () => string {
  return () => mint.autonomous({ checkout: withCheckoutClaims(change) }).header;
}

function claims(changes: Changes): () => string {
  return changedBy((all) => changed(all, changes));
}

function commerce(changes: Changes): () => string {
  return changedBy((all) => ({ ...all, agent_commerce: changed(all['agent_commerce'] as JsonObject, changes) }));
}

function line(changes: Changes): () => string {
  const lines = (all: JsonObject) => all['line_items'] as readonly JsonObject[];
  return changedBy((all) => ({ ...all, line_items: lines(all).map((one) => changed(one, changes)) }));
}

function head(changes: Changes): () => string {
  const change = ({ header, claims }: { readonly header: JsonObject; readonly claims: JsonObject }) => ({
    header: changed(header, changes),
    claims,
  });
  return () => mint.autonomous({ checkout: { change } }).header;
}

function unsigned(payload: string): () => string {
  const header = Buffer.from('{"alg":"ES256","typ":"JWT","kid":"k"}').toString('base64url');
  const checkoutJwt = `${header}.${Buffer.from(payload).toString('base64url')}.AAAA`;
  return () => mint.autonomous({ checkoutJwt }).header;
}

function closed(changes: Changes): () => string {
  return () => mint.autonomous({ hands: { closed: withMandate(changes) } }).header;
}

const LAST_SECOND = 253_402_300_799;
const TOTAL = [{ type: 'total', amount: 10_000 }];

describe('the checkout of a mandate (ap2 7.6, step 11)', () => {
  rows(verify, 'checkout', [
    ['as the merchant signs it', claims({}), 'accepted'],
    ['of another hash', closed({ checkout_hash: hashed('another') }), 'checkout_hash_mismatch'],
    ['with an empty hash', closed({ checkout_hash: '' }), 'checkout_hash_mismatch'],
    [
      'that is no text',
      () =>
        mint.autonomous({
          hands: {
            closed: {
              content: ({ mandate }) => ({
                mandate: { vct: mandate['vct'] ?? null, checkout_hash: hashed('1'), checkout_jwt: 1 },
                disclosures: [],
              }),
            },
          },
        }).header,
      'claims_invalid',
    ],
    [
      'that is no token',
      () => mint.autonomous({ checkoutJwt: `a.${Buffer.from('{"jti":"x"}').toString('base64url')}.b` }).header,
      'checkout_signature_invalid',
    ],
    [
      'of a stranger under our key id',
      () => mint.autonomous({ checkout: { signer: mint.parties.stranger } }).header,
      'checkout_signature_invalid',
    ],
    [
      'signed by an issuer of mandates',
      () =>
        mint.autonomous({
          checkout: {
            signer: mint.parties.provider,
            change: (token) => ({ ...token, header: { ...token.header, kid: mint.parties.provider.publicJwk.kid } }),
          },
        }).header,
      'checkout_signature_invalid',
    ],
    ['with alg none', head({ alg: 'none' }), 'checkout_signature_invalid'],
    ['of another algorithm', head({ alg: 'ES384' }), 'checkout_signature_invalid'],
    ['with an unknown key id', head({ kid: 'other' }), 'checkout_signature_invalid'],
    ['without a key id', head({ kid: undefined }), 'checkout_signature_invalid'],
    ['of type JWT', head({ typ: 'JWT' }), 'accepted'],
    ['of the type of receipts', head({ typ: 'ap2-receipt+jwt' }), 'checkout_signature_invalid'],
    ['without a type', head({ typ: undefined }), 'checkout_signature_invalid'],
    ['with critical extensions', head({ crit: ['exp'] }), 'checkout_signature_invalid'],
    ['with b64', head({ b64: true }), 'checkout_signature_invalid'],
    ['of another issuer', claims({ iss: 'https://other.example' }), 'checkout_invalid'],
    ['for another audience', claims({ aud: 'https://other.example' }), 'checkout_invalid'],
    ['with 15 characters of id', claims({ jti: 'a'.repeat(15) }), 'checkout_invalid'],
    ['with 129 characters of id', claims({ jti: 'a'.repeat(129) }), 'checkout_invalid'],
    ['with its beginning in milliseconds too', claims({ iat_ms: (NOW - 20) * 1_000 + 999 }), 'accepted'],
    ['with milliseconds of the second after', claims({ iat_ms: (NOW - 19) * 1_000 }), 'checkout_invalid'],
    ['with milliseconds of the second before', claims({ iat_ms: (NOW - 20) * 1_000 - 1 }), 'checkout_invalid'],
    ['with an end in milliseconds', claims({ exp: (NOW + 300) * 1_000 }), 'checkout_invalid'],
    ['begun at the very edge of the skew', claims({ iat: NOW + 60 }), 'accepted'],
    ['begun beyond the skew', claims({ iat: NOW + 61 }), 'not_yet_valid'],
    ['good from the very edge of the skew', claims({ nbf: NOW + 60 }), 'accepted'],
    ['good from beyond the skew', claims({ nbf: NOW + 61 }), 'not_yet_valid'],
    ['in the last second of the skew', claims({ exp: NOW - 59 }), 'accepted'],
    ['over, with the skew', claims({ exp: NOW - 60 }), 'checkout_expired'],
    ['that is completed', claims({ status: 'completed' }), 'checkout_invalid'],
    ['with nothing in it', claims({ line_items: [] }), 'checkout_invalid'],
    ['with none of an item', line({ quantity: 0 }), 'checkout_invalid'],
    ['with two totals', claims({ totals: [...TOTAL, ...TOTAL] }), 'checkout_invalid'],
    ['with another sum beside the total', claims({ totals: [{ type: 'tax', amount: 0 }, ...TOTAL] }), 'accepted'],
    ['of another profile', commerce({ profile: 'agent-commerce/ap2/checkout/v2' }), 'checkout_invalid'],
    ['with an unknown member', commerce({ discount: '1' }), 'checkout_invalid'],
    ['with a hash that is none', commerce({ input_hash: 'abc' }), 'checkout_invalid'],
    ['with an amount with an exponent', commerce({ amount: '1e-2' }), 'checkout_invalid'],
    ['with a network that is none', commerce({ network: 'base' }), 'checkout_invalid'],
    ['without a status', claims({ status: undefined }), 'accepted'],
    ['with 16 characters of id, which are not the nonce', claims({ jti: 'a'.repeat(16) }), 'nonce_mismatch'],
    ['with 128 characters of id, which are not the nonce', claims({ jti: 'a'.repeat(128) }), 'nonce_mismatch'],
    ['good until the last second of the year 9999', claims({ exp: LAST_SECOND }), 'accepted'],
    ['good for a second longer', claims({ exp: LAST_SECOND + 1 }), 'checkout_invalid'],
    // A pattern alone would accept these.
    ['with a hash in a list', commerce({ input_hash: ['a'.repeat(43)] }), 'checkout_invalid'],
    ['with a network in a list', commerce({ network: ['eip155:84532'] }), 'checkout_invalid'],
    ['with a number that is not exact', unsigned('{"iat":9007199254740993}'), 'checkout_invalid'],
    ['of the same form with one that is', unsigned('{"iat":1}'), 'checkout_signature_invalid'],
  ] satisfies readonly Row[]);
});

describe('a checkout of this process', () => {
  it('is known by its hash until its end, and its signature is not checked again', async () => {
    const issued = createIssuedCheckouts();
    const own = verifierFor(mint, { minted: issued });
    const made = mint.autonomous({ checkout: { signer: mint.parties.stranger } });
    const refused = await own(made.header);
    assert.equal(refused.kind === 'refused' && refused.reason, 'checkout_signature_invalid');
    issued.add(hashed(made.checkoutJwt), NOW + 1);
    assert.equal((await own(made.header)).kind, 'accepted');
    const late = await own(made.header, { now: NOW + 1 });
    assert.equal(late.kind === 'refused' && late.reason, 'checkout_signature_invalid');
  });

  it('is forgotten when ten thousand others came after it', () => {
    const issued = createIssuedCheckouts();
    for (let count = 0; count <= 10_000; count += 1) issued.add(`hash ${count}`, NOW);
    assert.equal(issued.has('hash 0', NOW - 1), false);
    assert.equal(issued.has('hash 1', NOW - 1), true);
  });
});

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

const commerceWith = (changes: Changes) => checkout(withCommerce(changes));
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
    ['another method', commerceWith({ payment_method: 'card' }), 'payment_method_mismatch'],
    ['no network', commerceWith({ network: undefined }), 'payment_method_mismatch'],
    ['no asset', commerceWith({ asset: undefined }), 'payment_method_mismatch'],
    ['no destination', commerceWith({ destination: undefined }), 'payment_method_mismatch'],
    [
      'a checkout for nothing, and a call that costs',
      commerceWith({ payment_method: 'none' }),
      'payment_method_mismatch',
    ],
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
