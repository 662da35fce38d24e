import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { configWarnings, mandatesSummary } from '../../../src/config/warnings.ts';
import { checkoutKeysOf } from '../../../src/mandates/ap2/checkout.ts';
import type { Ap2Config } from '../../../src/mandates/ap2/purchase.ts';
import { createAuthority } from '../../support/certificates.ts';
import { type Changes, load, problems } from '../document/document.ts';
import { at, file } from '../files.ts';
import type { Row } from '../refusals.ts';
import { asking, CHECKOUT_PEM, DID_KEY, issuers, jwk, keyed, PROVIDER, pem, publicHalf, refuses } from './ap2.ts';

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
      const { own, trusted } = checkoutKeysOf(ap2({ [`${A}.checkout.kid`]: kid, [TRUST]: [next] }).checkout);
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

const R = 'resources.report';
const CARD = pem();
const CARD_KID = checkoutKeysOf({ signingKey: CARD, kid: undefined, alsoTrust: [] }).own.publicJwk.kid;

const TRUST = `${A}.checkout.alsoTrust`;
const SIGNING = `${A}.checkout.signingKey`;
const ROWS: readonly Row[] = [
  ['to be on without a key', `${A}.checkout`, undefined, /^is missing: the key that signs checkouts/],
  ['to ask without an issuer', `${A}.issuers`, undefined, /^is missing: resources\.report requires ap2/],
  [
    'other digits for the token',
    { [`${A}.currencies`]: { USDC: 2 } },
    `${A}.currencies.USDC`,
    /must be 6, or left out/,
  ],
  ['a checkout key that is none', SIGNING, 'hello', /PKCS#8 PEM/],
  [
    'the key of the agent card for checkouts',
    { 'protocols.a2a.signingKey': CHECKOUT_PEM },
    SIGNING,
    /must not be the key of protocols\.a2a\.signingKey/,
  ],
  [
    'the checkout key as an issuer',
    issuers({ ...PROVIDER, keys: [{ ...publicHalf(CHECKOUT_PEM), kid: 'k' }] }),
    `${A}.issuers[0].keys`,
    /must not be the key of authorization\.ap2\.checkout\.signingKey/,
  ],
  [
    'an issuer’s key for checkouts',
    { [TRUST]: PROVIDER.keys },
    `${A}.issuers[0].keys`,
    /must not be the key of authorization\.ap2\.checkout\.alsoTrust\[0\]/,
  ],
  ['a private key to trust besides', { [TRUST]: [{ ...jwk('k'), d: 'AAAA' }] }, `${TRUST}[0]`, /private members/],
  ['a checkout key of another curve', { [TRUST]: [jwk('k', 'P-384')] }, `${TRUST}[0]`, /curve P-256/],
  [
    'two checkout keys of one name',
    { [`${A}.checkout`]: { signingKey: CHECKOUT_PEM, kid: 'k', alsoTrust: [jwk('k')] } },
    `${TRUST}[0]`,
    /must have a kid that no other key/,
  ],
  [
    'the name of the card’s key for the checkout key',
    { 'protocols.a2a.signingKey': CARD, [`${A}.checkout.kid`]: CARD_KID },
    `${A}.checkout.kid`,
    /must not be the name of the key of the agent card/,
  ],
  [
    'the name of the card’s key for checkouts',
    { 'protocols.a2a.signingKey': CARD, [TRUST]: [jwk(CARD_KID)] },
    `${TRUST}[0]`,
    /must have a kid that no other key/,
  ],
  ['more digits than the token has', `${R}.pricing.amount`, '0.0100000', /at most 6 digits behind the point with ap2/],
  ['a price that JSON cannot hold', `${R}.pricing.amount`, '9007199254.740993', /less than 2\^53/],
];

describe('authorization.ap2 refuses', () => {
  refuses(ROWS);

  it('problems of other sections are named in the same run', () => {
    const changes = { ...keyed({ d: 'x' }), [`${A}.checkout.signingKey`]: 'x', 'server.port': -1 };
    assert.deepEqual(
      problems(asking(changes))
        .map(({ path }) => path)
        .toSorted(),
      [`${A}.checkout.signingKey`, `${A}.issuers[0].keys[0]`, 'server.port'],
    );
  });
});

const I = 'authorization.ap2.issuers';
const FIRST = `${I}[0]`;
const FIRST_KEY = `${I}[0].keys[0]`;
const JWKS = `${I}[0].jwksUri`;
const ROOTS = `${I}[0].x5cRoots[0]`;
const ROOT = file('root.pem', createAuthority('One').certificate);
const LEAF = file('leaf.pem', createAuthority('One').issue().certificate);
const EMPTY = file('empty.pem', 'nothing');
const BROKEN = file('broken.pem', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');

function bank(x5cRoots: readonly string[], id = 'https://bank.example'): Changes {
  return issuers({ id, x5cRoots });
}

function remote(jwksUri: string): Changes {
  return issuers({ id: 'far', jwksUri });
}

const ISSUERS: readonly Row[] = [
  ['an issuer without keys', issuers({ id: 'x' }), FIRST, /exactly one of keys, jwksUri and x5cRoots/],
  ['an issuer with two sources', issuers({ ...PROVIDER, jwksUri: 'https://far.example/' }), FIRST, /exactly one of/],
  ['a did:key with other keys', issuers({ ...PROVIDER, id: DID_KEY }), FIRST, /did:web or did:key needs none/],
  ['an issuer twice', issuers(PROVIDER, { ...PROVIDER, keys: [jwk('k')] }), `${I}[1].id`, /is there already/],
  [
    'the key of one issuer for another',
    issuers(PROVIDER, { id: 'x', keys: PROVIDER.keys }),
    `${I}[1].keys`,
    /must not be the key of authorization\.ap2\.issuers\[0\]\.keys/,
  ],
  ['a private member', keyed({ d: 'AAAA' }), FIRST_KEY, /must be a public key; it has private members/],
  [
    'a curve that is not served',
    keyed({ crv: 'P-521' }),
    FIRST_KEY,
    /must be of curve P-256, P-384, secp256k1 or Ed25519/,
  ],
  ['a curve that is not the point’s', keyed({ crv: 'secp256k1' }), FIRST_KEY, /must be a point of its curve/],
  ['another algorithm than the curve’s', keyed({ alg: 'ES384' }), FIRST_KEY, /must have alg ES256/],
  ['a key for encryption', keyed({ use: 'enc' }), FIRST_KEY, /must be a key for verifying/],
  ['a key without name', issuers({ ...PROVIDER, keys: [publicHalf(pem())] }), FIRST_KEY, /must have a kid/],
  [
    'two keys of one name',
    issuers({ ...PROVIDER, keys: [jwk('k'), jwk('k')] }),
    `${I}[0].keys[1]`,
    /must have a kid that no other key here has/,
  ],
];

const SOURCES: readonly Row[] = [
  [
    'one name at two issuers without iss',
    issuers({ id: 'x', keys: [jwk('k')], allowKidOnly: true }, { id: 'y', keys: [jwk('k')], allowKidOnly: true }),
    `${I}[1].keys`,
    /must not have a kid of authorization\.ap2\.issuers\[0\]/,
  ],
  [
    'remote keys without iss',
    issuers({ id: 'x', jwksUri: 'https://far.example/', allowKidOnly: true }),
    `${I}[0].allowKidOnly`,
    /must be false, or have keys/,
  ],
  ['keys over http', remote('http://far.example/jwks.json'), JWKS, /must be https/],
  ['keys of this machine over http', remote('http://127.0.0.1/jwks.json'), JWKS, /must be https/],
  ['keys of a file', remote('file:///etc/jwks.json'), JWKS, /absolute http/],
  ['credentials for keys', remote('https://user:pass@far.example/'), JWKS, /must not have credentials/],
  ['keys of a cloud’s metadata', remote('https://169.254.169.254/jwks.json'), JWKS, /link-local, metadata/],
  ['a did:web of an address', issuers({ id: 'did:web:169.254.169.254' }), `${I}[0].id`, /did:web with a host name/],
  ['a did:key that is none', issuers({ id: 'did:key:z123' }), `${I}[0].id`, /did:key of P-256, Ed25519 or secp256k1/],
  ['roots for a name without host', bank([ROOT], 'bank'), `${I}[0].id`, /must be an https URL with x5cRoots/],
  ['roots that are not there', bank(['/nowhere.pem']), ROOTS, /can be read: \/nowhere\.pem cannot be read \(ENOENT\)/],
  ['a file without certificates', bank([EMPTY]), ROOTS, /certificates as PEM text/],
  ['a broken certificate', bank([BROKEN]), ROOTS, /certificates that can be read/],
  ['a root that is no authority', bank([LEAF]), ROOTS, /authorities only/],
];

describe('an issuer of mandates is refused', () => refuses(ISSUERS));
describe('a source of keys is refused', () => refuses(SOURCES));
