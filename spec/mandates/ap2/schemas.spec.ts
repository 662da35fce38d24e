import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import checkoutSchema from '../../../schemas/ap2-checkout.schema.json' with { type: 'json' };
import envelopeSchema from '../../../schemas/ap2-envelope.schema.json' with { type: 'json' };
import { readSigningKey } from '../../../src/crypto/signing-key.ts';
import type { Json } from '../../../src/json/json.ts';
import { createCheckoutMint, createIssuedCheckouts } from '../../../src/mandates/ap2/checkout.ts';
import { readEnvelope } from '../../../src/mandates/ap2/envelope.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { NOW, profileWith, purchaseWith } from '../../support/ap2/purchase.ts';

const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false });
const isEnvelope = ajv.compile(envelopeSchema);
const isCheckout = ajv.compile(checkoutSchema);
const MAX_BYTES = 65_536;

/** Whether the gateway accepts it. */
function isRead(envelope: Json): boolean {
  const value = Buffer.from(JSON.stringify(envelope)).toString('base64url');
  try {
    readEnvelope({ kind: 'text', value }, MAX_BYTES);
    return true;
  } catch {
    return false;
  }
}

function decoded(header: string): Json {
  return JSON.parse(Buffer.from(header, 'base64url').toString()) as Json;
}

describe('the published schema of envelopes', () => {
  const mint = createMint();
  for (const [what, { header }] of Object.entries({
    'a direct mandate': mint.direct(),
    'an autonomous one': mint.autonomous(),
    'one with a payment mandate': mint.autonomous({ payment: true, delegated: true }),
  }))
    it(`accepts ${what}`, () => {
      assert.ok(isEnvelope(decoded(header)), JSON.stringify(isEnvelope.errors));
      assert.ok(isRead(decoded(header)));
    });

  const payload = 'aaaaa.bbbbb.ccccc~';
  const rows: readonly (readonly [title: string, envelope: Json, fits: boolean])[] = [
    ['the least', { method: 'ap2', payload }, true],
    ['a signature of nothing', { method: 'ap2', payload: 'aaaaaaaa.bbbbbbbb.~' }, true],
    ['the longest', { method: 'ap2', payload: payload.padEnd(24_576, 'a') }, true],
    ['one character more', { method: 'ap2', payload: payload.padEnd(24_577, 'a') }, false],
    ['one character less than the least', { method: 'ap2', payload: 'aaa.bbbb.ccccc~' }, false],
    ['a token that is no SD-JWT', { method: 'ap2', payload: 'aaaaa.bbbbb.cccccc' }, false],
    ['two parts', { method: 'ap2', payload: 'aaaaaaaa.bbbbbbbb~' }, false],
    ['a line break at the end', { method: 'ap2', payload: `${payload}\n` }, false],
    ['no payload', { method: 'ap2' }, false],
    ['a payload that is an object', { method: 'ap2', payload: {} }, false],
    ['a payment mandate that is nothing', { method: 'ap2', payload, payment_mandate: null }, false],
    ['another method', { method: 'ap3', payload }, false],
    ['another version', { method: 'ap2', version: '0.3', payload }, false],
    ['a further member', { method: 'ap2', payload, more: 1 }, false],
    ['a list', [], false],
  ];
  for (const [title, envelope, fits] of rows)
    it(`agrees with the gateway on ${title}`, () =>
      assert.deepEqual([isEnvelope(envelope), isRead(envelope)], [fits, fits]));
});

describe('the published schema of checkouts', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const reading = readSigningKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  assert.ok(reading.ok);
  const mint = createCheckoutMint({ profile: profileWith(), key: reading.key, minted: createIssuedCheckouts() });
  const purchases = {
    'a paid call': purchaseWith(),
    'a free call': purchaseWith({ price: { amount: '0', currency: 'XXX' }, payment: undefined }),
  };
  for (const [what, purchase] of Object.entries(purchases))
    it(`accepts what is issued for ${what}`, () => {
      const [, claims = ''] = mint(purchase, NOW * 1_000).jwt.split('.');
      assert.ok(isCheckout(decoded(claims)), JSON.stringify(isCheckout.errors));
    });
  it('refuses one that binds nothing', () => {
    const [, claims = ''] = mint(purchaseWith(), NOW * 1_000).jwt.split('.');
    const { agent_commerce: _bound, ...others } = decoded(claims) as { readonly [name: string]: Json };
    assert.equal(isCheckout(others), false);
  });
});
