import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { configWarnings, mandatesSummary } from '../../../src/config/warnings.ts';
import { checkoutKeysOf } from '../../../src/mandates/ap2/checkout.ts';
import type { Ap2Config } from '../../../src/mandates/ap2/purchase.ts';
import { createAuthority } from '../../support/certificates.ts';
import { type Changes, load } from '../document/document.ts';
import { at, file } from '../files.ts';
import { asking, CHECKOUT_PEM, DID_KEY, jwk, PROVIDER, publicHalf } from './ap2.ts';

const A = 'authorization.ap2';

function ap2(changes: Changes = {}): Ap2Config {
  const config = load(asking(changes)).authorization.ap2;
  assert.ok(config);
  return config;
}

describe('authorization.ap2', () => {
  it('is off unless it is switched on, and no mandate is required', () => {
    for (const changes of [{}, { [A]: { enabled: false, issuers: [PROVIDER] } }]) {
      const config = load(changes);
      assert.deepEqual(config.authorization, { ap2: undefined });
      assert.deepEqual(config.resources[0]?.authorization, []);
      assert.equal(mandatesSummary(config), 'no mandates');
    }
  });

  it('needs a key and an issuer, and has defaults for the rest', () => {
    const config = load(asking());
    assert.deepEqual(config.authorization.ap2?.profile, {
      audience: 'https://api.shop.example',
      issuer: 'https://api.shop.example',
      merchant: { id: 'shop', name: 'Shop' },
      clockSkewSeconds: 60,
      maxPresentationAgeSeconds: 300,
      maxEnvelopeBytes: 12_288,
      algorithms: new Set(['ES256']),
      checkoutTtlSeconds: 300,
      exponents: new Map([
        ['XXX', 0],
        ['USDC', 6],
      ]),
      policy: { paymentMandate: 'optional', bindPaymentNonce: false },
    });
    assert.deepEqual(config.resources[0]?.authorization, ['ap2']);
    assert.equal(mandatesSummary(config), 'ap2 mandates for 1 of 1 resources (issuers: 1)');
    assert.deepEqual(configWarnings(config), []);
  });

  it('takes configured values', () => {
    const { profile } = ap2({
      'merchant.publicBaseUrl': 'https://api.shop.example/',
      [`${A}.audience`]: 'urn:shop',
      [`${A}.clockSkewSeconds`]: 300,
      [`${A}.maxPresentationAgeSeconds`]: 900,
      [`${A}.maxEnvelopeBytes`]: 16_384,
      [`${A}.algorithms`]: ['EdDSA'],
      [`${A}.currencies`]: { EUR: 2, JPY: 0, USDC: 6 },
      [`${A}.policy`]: { paymentMandate: 'required', bindPaymentNonce: true },
      [`${A}.checkout.ttlSeconds`]: 900,
    });
    assert.deepEqual([profile.audience, profile.issuer], ['urn:shop', 'https://api.shop.example']);
    assert.deepEqual([profile.clockSkewSeconds, profile.maxPresentationAgeSeconds], [300, 900]);
    assert.deepEqual([profile.maxEnvelopeBytes, profile.checkoutTtlSeconds], [16_384, 900]);
    assert.deepEqual(profile.algorithms, new Set(['ES256', 'EdDSA']));
    assert.deepEqual(Object.fromEntries(profile.exponents), { XXX: 0, USDC: 6, EUR: 2, JPY: 0 });
    assert.deepEqual(profile.policy, { paymentMandate: 'required', bindPaymentNonce: true });
  });

  it('knows the token under each of its names', () => {
    const { profile } = ap2({ 'payments.x402.assetName': 'USDC', 'payments.x402.currency': 'USD' });
    assert.deepEqual([profile.exponents.get('USD'), profile.exponents.get('USDC')], [6, 6]);
  });

  it('the checkout key is named by its thumbprint or as configured, and is a secret', () => {
    const [line = ''] = CHECKOUT_PEM.split('\n').filter((text) => /^[A-Za-z0-9+/=]{8,}$/.test(text));
    const config = load(asking({ [`${A}.checkout.signingKey`]: at(`file:${file('checkout.pem', CHECKOUT_PEM)}`) }));
    assert.ok(config.secrets.includes(line));
    const next = jwk('next');
    for (const [kid, expected] of [
      [undefined, /^[A-Za-z0-9_-]{43}$/],
      ['checkout-2026-11', /^checkout-2026-11$/],
    ] as const) {
      const { own, trusted } = checkoutKeysOf(
        ap2({ [`${A}.checkout.kid`]: kid, [`${A}.checkout.alsoTrust`]: [next] }).checkout,
      );
      assert.match(own.publicJwk.kid, expected);
      const { x, y } = publicHalf(CHECKOUT_PEM);
      assert.deepEqual([own.publicJwk.x, own.publicJwk.y], [x, y]);
      assert.deepEqual(trusted, [own.publicJwk, { ...next, use: 'sig', alg: 'ES256' }]);
    }
  });

  it('reads five sources of an issuer’s keys', () => {
    const roots = file('roots.pem', createAuthority('One').certificate + createAuthority('Two').certificate);
    const { issuers } = ap2({
      [`${A}.issuers`]: [
        PROVIDER,
        { id: 'sdk', allowKidOnly: true, keys: [jwk('sdk-1'), jwk('sdk-2')] },
        { id: 'https://far.example', jwksUri: 'https://far.example/keys?of=agents' },
        { id: 'https://bank.example/ap2', x5cRoots: [roots], credentialVct: ['com.emvco.dpc'] },
        { id: 'did:web:did.example' },
        { id: DID_KEY },
      ],
    });
    const read = issuers.map(({ id, role, allowKidOnly, source }) => [id, role.kind, allowKidOnly, source.kind]);
    assert.deepEqual(read, [
      ['https://agents.example', 'mandates', false, 'static'],
      ['sdk', 'mandates', true, 'static'],
      ['https://far.example', 'mandates', false, 'jwks'],
      ['https://bank.example/ap2', 'credentials', false, 'x5c'],
      ['did:web:did.example', 'mandates', false, 'did-web'],
      [DID_KEY, 'mandates', false, 'static'],
    ]);
    const sources = issuers.map(({ source }) => source);
    for (const source of sources) {
      if (source.kind === 'x5c') assert.deepEqual([source.host, source.roots.length], ['bank.example', 2]);
      if (source.kind === 'jwks') assert.equal(source.url, 'https://far.example/keys?of=agents');
      if (source.kind === 'did-web') assert.equal(source.url, 'https://did.example/.well-known/did.json');
    }
  });

  it('warns of mandates that no resource requires, and of keys that cannot be used', () => {
    const idle = configWarnings(load(asking({ 'resources.report.authorization': undefined })));
    assert.equal(idle.length, 1);
    assert.match(idle[0] ?? '', /^authorization\.ap2: enabled, but no resource/);
    const other = { id: 'https://curve.example', keys: [jwk('p384', 'P-384')] };
    const unused = configWarnings(load(asking({ [`${A}.issuers`]: [PROVIDER, other] })));
    assert.deepEqual(unused.length, 1);
    assert.match(unused[0] ?? '', /no key of https:\/\/curve\.example is for an algorithm/);
    const opted = asking({ [`${A}.issuers`]: [PROVIDER, other], [`${A}.algorithms`]: ['ES384'] });
    assert.deepEqual(configWarnings(load(opted)), []);
  });

  it('a free resource may ask for one too', () => {
    const free = { 'resources.report.pricing': { type: 'free' }, 'payments.x402': undefined };
    assert.deepEqual(load(asking(free)).resources[0]?.authorization, ['ap2']);
  });
});
