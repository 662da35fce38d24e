import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json, JsonObject } from '../../../../src/json/types.ts';
import { createIssuedCheckouts } from '../../../../src/mandates/ap2/checkout/checkout-mint.ts';
import { type Changes, changed, withMandate } from '../../../support/ap2/hands.ts';
import { createMint } from '../../../support/ap2/mint.ts';
import { hashed } from '../../../support/ap2/oracle.ts';
import { NOW } from '../../../support/ap2/purchase.ts';
import { verifierFor } from '../../../support/ap2/verifier.ts';
import { type Row, rows } from '../table.ts';

const mint = createMint();
const verify = verifierFor(mint);

/** A mandate for a checkout with other claims, signed by the merchant all the same. */
function claims(changes: Changes): () => string {
  return () =>
    mint.autonomous({
      checkout: { change: ({ header, claims }) => ({ header, claims: changed(claims, changes) }) },
    }).header;
}

function head(changes: Changes): () => string {
  return () =>
    mint.autonomous({ checkout: { change: ({ header, claims }) => ({ header: changed(header, changes), claims }) } })
      .header;
}

/** The same for members deeper inside. */
function commerce(changes: Changes): () => string {
  return inside('agent_commerce', (value) => changed(value as JsonObject, changes));
}

function line(changes: Changes): () => string {
  return inside('line_items', (lines) => (lines as readonly JsonObject[]).map((one) => changed(one, changes)));
}

function item(changes: Changes): () => string {
  return inside('line_items', (lines) =>
    (lines as readonly JsonObject[]).map((one) => ({ ...one, item: changed(one['item'] as JsonObject, changes) })),
  );
}

function inside(name: string, change: (value: Json) => Json): () => string {
  return () =>
    mint.autonomous({
      checkout: {
        change: ({ header, claims }) => ({ header, claims: { ...claims, [name]: change(claims[name] ?? null) } }),
      },
    }).header;
}

function closed(changes: Changes): () => string {
  return () => mint.autonomous({ hands: { closed: withMandate(changes) } }).header;
}

const TOTAL = [{ type: 'total', amount: 10_000 }];

describe('the checkout of a mandate (ap2 7.6, step 11)', () => {
  rows(verify, 'checkout', [
    ['as the merchant signs it', claims({}), 'accepted'],
    ['of another hash', closed({ checkout_hash: hashed('another') }), 'checkout_hash_mismatch'],
    ['without a hash', closed({ checkout_hash: undefined }), 'claims_invalid'],
    ['with an empty hash', closed({ checkout_hash: '' }), 'checkout_hash_mismatch'],
    ['with a hash that is no text', closed({ checkout_hash: 7 }), 'claims_invalid'],
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
      'signed by whoever may sign mandates',
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
    ['without an issuer', claims({ iss: undefined }), 'checkout_invalid'],
    ['for another audience', claims({ aud: 'https://other.example' }), 'checkout_invalid'],
    ['for a list of audiences', claims({ aud: ['https://shop.example'] }), 'checkout_invalid'],
    ['without an id of its own', claims({ jti: undefined }), 'checkout_invalid'],
    ['with 15 characters of id', claims({ jti: 'a'.repeat(15) }), 'checkout_invalid'],
    ['with 129 characters of id', claims({ jti: 'a'.repeat(129) }), 'checkout_invalid'],
    ['with an id that is no text', claims({ jti: 1234567890123456 }), 'checkout_invalid'],
    ['without a beginning', claims({ iat: undefined }), 'checkout_invalid'],
    ['with a beginning that is a text', claims({ iat: String(NOW) }), 'checkout_invalid'],
    ['with a beginning before time', claims({ iat: -1 }), 'checkout_invalid'],
    ['with its beginning in milliseconds too', claims({ iat_ms: (NOW - 20) * 1_000 + 999 }), 'accepted'],
    ['with milliseconds of the second after', claims({ iat_ms: (NOW - 19) * 1_000 }), 'checkout_invalid'],
    ['with milliseconds of the second before', claims({ iat_ms: (NOW - 20) * 1_000 - 1 }), 'checkout_invalid'],
    ['with milliseconds that are a text', claims({ iat_ms: String((NOW - 20) * 1_000) }), 'checkout_invalid'],
    ['with parts of milliseconds', claims({ iat_ms: (NOW - 20) * 1_000 + 0.5 }), 'checkout_invalid'],
    ['without an end', claims({ exp: undefined }), 'checkout_invalid'],
    ['with an end in milliseconds', claims({ exp: (NOW + 300) * 1_000 }), 'checkout_invalid'],
    ['with an end between seconds', claims({ exp: NOW + 300.5 }), 'checkout_invalid'],
    ['begun at the very edge of the skew', claims({ iat: NOW + 60 }), 'accepted'],
    ['begun beyond the skew', claims({ iat: NOW + 61 }), 'not_yet_valid'],
    ['good from the very edge of the skew', claims({ nbf: NOW + 60 }), 'accepted'],
    ['good from beyond the skew', claims({ nbf: NOW + 61 }), 'not_yet_valid'],
    ['good from a text', claims({ nbf: String(NOW) }), 'checkout_invalid'],
    ['in the last second of the skew', claims({ exp: NOW - 59 }), 'accepted'],
    ['over, with the skew', claims({ exp: NOW - 60 }), 'checkout_expired'],
    ['that is completed', claims({ status: 'completed' }), 'checkout_invalid'],
    ['with a number for its id', claims({ id: 7 }), 'checkout_invalid'],
    ['with links that are none', claims({ links: {} }), 'checkout_invalid'],
    ['with a currency that is no text', claims({ currency: 7 }), 'checkout_invalid'],
    ['with an empty currency', claims({ currency: '' }), 'checkout_invalid'],
    ['with a merchant that is a text', claims({ merchant: 'test-shop' }), 'checkout_invalid'],
    ['with a merchant without id', claims({ merchant: { name: 'Test Shop' } }), 'checkout_invalid'],
    ['with a merchant without name', claims({ merchant: { id: 'test-shop' } }), 'checkout_invalid'],
    [
      'with a merchant whose site is no text',
      claims({ merchant: { id: 'test-shop', name: 'Test Shop', website: 1 } }),
      'checkout_invalid',
    ],
    ['with nothing in it', claims({ line_items: [] }), 'checkout_invalid'],
    ['with items that are no list', claims({ line_items: {} }), 'checkout_invalid'],
    ['with a line that is a text', claims({ line_items: ['market_report'] }), 'checkout_invalid'],
    ['with a line without id', line({ id: undefined }), 'checkout_invalid'],
    ['with a line without totals', line({ totals: undefined }), 'checkout_invalid'],
    ['with none of an item', line({ quantity: 0 }), 'checkout_invalid'],
    ['with half an item', line({ quantity: 0.5 }), 'checkout_invalid'],
    ['with a line without item', line({ item: undefined }), 'checkout_invalid'],
    ['with an item without id', item({ id: undefined }), 'checkout_invalid'],
    ['with an item of no name', item({ id: '' }), 'checkout_invalid'],
    ['with an item without title', item({ title: undefined }), 'checkout_invalid'],
    ['with an item of negative price', item({ price: -1 }), 'checkout_invalid'],
    ['with totals that are no list', claims({ totals: {} }), 'checkout_invalid'],
    ['with a total that is a number', claims({ totals: [10_000] }), 'checkout_invalid'],
    ['with a total that is nothing', claims({ totals: [null] }), 'checkout_invalid'],
    ['with a total without type', claims({ totals: [{ amount: 10_000 }] }), 'checkout_invalid'],
    ['with half a unit', claims({ totals: [{ type: 'total', amount: 0.5 }] }), 'checkout_invalid'],
    ['with two totals', claims({ totals: [...TOTAL, ...TOTAL] }), 'checkout_invalid'],
    ['with another sum beside the total', claims({ totals: [{ type: 'tax', amount: 0 }, ...TOTAL] }), 'accepted'],
    ['without commerce', claims({ agent_commerce: undefined }), 'checkout_invalid'],
    ['with commerce that is a list', claims({ agent_commerce: [] }), 'checkout_invalid'],
    ['of another profile', commerce({ profile: 'agent-commerce/ap2/checkout/v2' }), 'checkout_invalid'],
    ['with a member that nobody knows', commerce({ discount: '1' }), 'checkout_invalid'],
    ['without a resource', commerce({ resource_id: undefined }), 'checkout_invalid'],
    ['with an empty resource', commerce({ resource_id: '' }), 'checkout_invalid'],
    ['without a hash of the input', commerce({ input_hash: undefined }), 'checkout_invalid'],
    ['with a hash that is none', commerce({ input_hash: 'abc' }), 'checkout_invalid'],
    ['with an amount that is a number', commerce({ amount: 0.01 }), 'checkout_invalid'],
    ['with an amount in powers', commerce({ amount: '1e-2' }), 'checkout_invalid'],
    ['without a currency in commerce', commerce({ currency: undefined }), 'checkout_invalid'],
    ['without a method', commerce({ payment_method: undefined }), 'checkout_invalid'],
    ['with a network that is none', commerce({ network: 'base' }), 'checkout_invalid'],
    ['with an asset that is no text', commerce({ asset: 1 }), 'checkout_invalid'],
    ['with an empty destination', commerce({ destination: '' }), 'checkout_invalid'],
  ] satisfies readonly Row[]);
});

describe('a checkout of this process', () => {
  it('is known by its hash until its end, and its signature is not checked again', async () => {
    const minted = createIssuedCheckouts();
    const own = verifierFor(mint, { minted });
    const made = mint.autonomous({ checkout: { signer: mint.parties.stranger } });
    const refused = await own(made.header);
    assert.equal(refused.kind === 'refused' && refused.reason, 'checkout_signature_invalid');
    minted.add(hashed(made.checkoutJwt), NOW + 1);
    assert.equal((await own(made.header)).kind, 'accepted');
    const late = await own(made.header, { now: NOW + 1 });
    assert.equal(late.kind === 'refused' && late.reason, 'checkout_signature_invalid');
  });

  it('is forgotten when ten thousand others came after it', () => {
    const minted = createIssuedCheckouts();
    for (let count = 0; count <= 10_000; count += 1) minted.add(`hash ${count}`, NOW);
    assert.equal(minted.has('hash 0', NOW - 1), false);
    assert.equal(minted.has('hash 1', NOW - 1), true);
  });
});
