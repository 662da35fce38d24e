import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { describe, it } from 'node:test';
import { createChainKeys, isUnderstood, maySign, pathLength } from '../../../src/mandates/ap2/x5c.ts';
import { authorityExtension, makeCertificate, namesExtension, type Statement } from '../../support/certificates.ts';

const HOST = 'ap2.bank.example';
const NOW = Date.UTC(2026, 10, 20, 12);
const HOUR = 3_600_000;

/** A subject with its key and its certificate. */
interface Party {
  readonly name: string;
  readonly keys: { readonly publicKey: Statement['publicKey']; readonly privateKey: Statement['publicKey'] };
  readonly pem: string;
}

type Changes = Partial<Omit<Statement, 'issuer' | 'subject'>> & { readonly curve?: string };

function keyPair(curve: string): Party['keys'] {
  return curve === 'Ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: curve });
}

function party(name: string, above: Party | undefined, { curve = 'P-256', ...changes }: Changes = {}): Party {
  const keys = keyPair(curve);
  const pem = makeCertificate(
    {
      issuer: above?.name ?? name,
      subject: name,
      publicKey: keys.publicKey,
      extensions: [authorityExtension()],
      from: NOW - HOUR,
      until: NOW + HOUR,
      ...changes,
    },
    (above?.keys ?? keys).privateKey,
  );
  return { name, keys, pem };
}

function base64(...parties: readonly Party[]): readonly string[] {
  return parties.map(({ pem }) => new X509Certificate(pem).raw.toString('base64'));
}

/** The extensions of a valid leaf. */
const FOR_HOST: Changes = { extensions: [namesExtension(HOST)] };
const ROOT = party('Root', undefined);
const MIDDLE = party('Middle', ROOT);
const LEAF = party('leaf', MIDDLE, FOR_HOST);
const DIRECT = party('direct', ROOT, { extensions: [namesExtension('other.example', HOST)] });

/** A leaf right under the root whose certificate has exactly this many characters in base64. */
function leafOf(characters: number): Party {
  let padding = characters / 2;
  for (;;) {
    const leaf = party('leaf', ROOT, { extensions: [namesExtension(HOST, 'x'.repeat(padding))] });
    const missing = (characters / 4) * 3 - new X509Certificate(leaf.pem).raw.length;
    // A signature is sometimes a byte shorter: then another one is made.
    if (missing === 0) return leaf;
    padding += missing;
  }
}

function trusting(roots: readonly Party[] = [ROOT], now: () => number = () => NOW): ReturnType<typeof createChainKeys> {
  return createChainKeys({ host: HOST, roots: roots.map(({ pem }) => new X509Certificate(pem)) }, now);
}

function found(x5c: readonly string[], roots?: readonly Party[]): object | undefined {
  return trusting(roots)(x5c)?.key.export({ format: 'jwk' });
}

describe('a certificate chain in the head of a token', () => {
  const otherRoot = party('Root', undefined);
  const second = party('Second', MIDDLE);
  const far = party('leaf', second, FOR_HOST);
  const longest = leafOf(8_192);
  const good: readonly (readonly [title: string, x5c: readonly string[], leaf: Party, roots?: readonly Party[]])[] = [
    ['ends at a root that it does not bring', base64(LEAF, MIDDLE), LEAF],
    ['ends at a root that it brings', base64(LEAF, MIDDLE, ROOT), LEAF],
    ['is one certificate that a root has issued', base64(DIRECT), DIRECT],
    ['ends at one of several roots', base64(LEAF, MIDDLE, ROOT), LEAF, [otherRoot, ROOT]],
    ['ends at a root that is not its own issuer', base64(LEAF, MIDDLE), LEAF, [MIDDLE]],
    ['has as many certificates as any', base64(far, second, MIDDLE, ROOT), far],
    ['has a certificate as long as any', base64(longest), longest],
  ];
  for (const [title, x5c, leaf, roots] of good)
    it(`gives the key of its leaf when it ${title}`, () => {
      assert.deepEqual(found(x5c, roots), leaf.keys.publicKey.export({ format: 'jwk' }));
      assert.equal(trusting(roots)(x5c)?.alg, 'ES256');
    });

  for (const [curve, alg] of [
    ['P-384', 'ES384'],
    ['secp256k1', 'ES256K'],
    ['Ed25519', 'EdDSA'],
  ] as const)
    it(`gives a key of ${curve} for ${alg}`, () => {
      const leaf = party('leaf', MIDDLE, { ...FOR_HOST, curve });
      assert.equal(trusting()(base64(leaf, MIDDLE))?.alg, alg);
    });

  const named = (...names: readonly string[]): Party =>
    party('leaf', MIDDLE, { extensions: [namesExtension(...names)] });
  const plain = party('Plain', ROOT, { extensions: [] });
  const bounded = party('Bounded', ROOT, { extensions: [authorityExtension(0)] });
  const below = party('Below', bounded);
  const underBelow = party('leaf', below, FOR_HOST);
  const deep = [party('A', ROOT)];
  for (const name of ['B', 'C', 'D']) deep.push(party(name, deep.at(-1)));
  const deepest = party('leaf', deep.at(-1), FOR_HOST);
  const rsa = party('leaf', MIDDLE, {
    extensions: [namesExtension(HOST)],
    publicKey: generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey,
  });
  const misnamed: Party = { ...ROOT, name: 'Elsewhere' };
  const [encoded = ''] = base64(DIRECT);
  const spoilt = Buffer.from(encoded, 'base64');
  spoilt.writeUInt8((spoilt.at(-1) ?? 0) ^ 1, spoilt.length - 1);
  const bad: readonly (readonly [title: string, x5c: readonly string[]])[] = [
    ['nothing', []],
    ['a root and nothing else', base64(ROOT)],
    ['a certificate that bears another name for the root', base64(party('leaf', misnamed, FOR_HOST))],
    ['a certificate one step too long', base64(leafOf(8_196))],
    ['a chain without its middle', base64(LEAF)],
    ['a chain in the wrong order', base64(MIDDLE, LEAF)],
    ['a certificate too many', base64(DIRECT, MIDDLE)],
    ['another root of the same name', base64(party('leaf', otherRoot, FOR_HOST), otherRoot)],
    ['a leaf for another host', base64(named('other.example'), MIDDLE)],
    ['a leaf for all hosts of a domain', base64(named('*.bank.example'), MIDDLE)],
    ['a leaf that names the host as its subject only', base64(party(HOST, MIDDLE, { extensions: [] }), MIDDLE)],
    [
      'a leaf that is an authority',
      base64(party('leaf', MIDDLE, { extensions: [authorityExtension(), namesExtension(HOST)] }), MIDDLE),
    ],
    ['a leaf issued by a leaf', base64(party('leaf', DIRECT, FOR_HOST), DIRECT)],
    ['a middle that is no authority', base64(party('leaf', plain, FOR_HOST), plain)],
    ['an authority under one that may have none', base64(underBelow, below, bounded)],
    ['more than four certificates', base64(deepest, ...deep.toReversed())],
    ['an RSA leaf', base64(rsa, MIDDLE)],
    [
      'a leaf of a curve that is not accepted',
      base64(party('leaf', MIDDLE, { extensions: [namesExtension(HOST)], curve: 'P-521' }), MIDDLE),
    ],
    [
      'a leaf of a curve that JWKs have no name for',
      base64(party('leaf', MIDDLE, { ...FOR_HOST, curve: 'brainpoolP256r1' }), MIDDLE),
    ],
    ['a good one and something illegible', [...base64(DIRECT), 'AAAA']],
    ['a spoilt signature', [spoilt.toString('base64')]],
    ['the alphabet of URLs', [encoded.replaceAll('+', '-').replaceAll('/', '_')]],
    ['a line break', [`${encoded.slice(0, 64)}\n${encoded.slice(64)}`]],
    ['no certificate', ['AAAA']],
  ];
  for (const [title, x5c] of bad) it(`gives no key for ${title}`, () => assert.equal(found(x5c), undefined));

  it('gives no key for a root that is a leaf itself', () => {
    const lonely = party('lonely', undefined, FOR_HOST);
    assert.equal(found(base64(lonely), [lonely]), undefined);
  });

  it('a leaf right under a bounded authority is within the bound', () =>
    assert.ok(found(base64(party('leaf', bounded, FOR_HOST), bounded))));

  it('gives keys only while every certificate is valid, also when the chain is remembered', () => {
    const short = party('Short', ROOT, { from: NOW - 60_000, until: NOW + 60_000 });
    const leaf = party('leaf', short, FOR_HOST);
    let now = NOW;
    const keyOf = trusting([ROOT], () => now);
    for (const [ms, valid] of [
      [0, true],
      [60_999, true],
      [61_000, false],
      [-60_000, true],
      [-60_001, false],
      [0, true],
    ] as const) {
      now = NOW + ms;
      assert.equal(keyOf(base64(leaf, short)) !== undefined, valid, `${ms} ms from now`);
    }
    const roots = [party('Old', undefined, { until: NOW - 2_000 })] as const;
    assert.equal(found(base64(party('leaf', roots[0], FOR_HOST)), roots), undefined);
  });
});

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ID = '0603551d13';
const TRUE = '0101ff';

function bound(extensions: readonly Buffer[]): number {
  const pem = makeCertificate({ issuer: 'A', subject: 'A', publicKey, extensions }, privateKey);
  return pathLength(new X509Certificate(pem).raw);
}

describe('the bound of an authority', () => {
  it('is read out of a certificate', () => {
    assert.equal(bound([]), Number.POSITIVE_INFINITY);
    assert.equal(bound([authorityExtension()]), Number.POSITIVE_INFINITY);
    for (const length of [0, 1, 5]) assert.equal(bound([authorityExtension(length)]), length);
    assert.equal(bound([authorityExtension(300)]), -1, 'longer than any chain');
  });

  const texts: readonly (readonly [what: string, hex: string, length: number])[] = [
    ['an extension that is critical', `${ID}${TRUE}04083006${TRUE}020103`, 3],
    ['one that is not', `${ID}04083006${TRUE}020103`, 3],
    ['more extensions behind it', `${ID}04083006${TRUE}020103300a`, 3],
    ['a bound without being an authority', `${ID}04053003020103`, 3],
    ['no bound', `${ID}04023000`, Number.POSITIVE_INFINITY],
    ['no octet string', `${ID}03083006${TRUE}020103`, -1],
    ['no sequence', `${ID}04083106${TRUE}020103`, -1],
    ['neither', `${ID}03083106${TRUE}020103`, -1],
    ['a bound that is no integer', `${ID}04083006${TRUE}030103`, -1],
    ['something behind the bound', `${ID}040b3009${TRUE}020103020101`, -1],
  ];
  for (const [what, hex, length] of texts)
    it(`with ${what} is ${length}`, () => assert.equal(pathLength(Buffer.from(`3000${hex}`, 'hex')), length));
});

const NAMES = namesExtension(HOST);
const AUTHORITY = authorityExtension();
const root = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const middle = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' });

const der = (hex: string): Buffer => Buffer.from(hex, 'hex');
/** Key usage with these bits: 80 signs, 08 agrees on keys, 04 signs certificates, 02 lists. */
const usage = (bits: string, critical = TRUE): Buffer =>
  der(critical === '' ? `300b0603551d0f0404030200${bits}` : `300e0603551d0f${critical}0404030200${bits}`);
/** `permitted: other.example`. */
const names = (critical: string): Buffer => {
  const limits = `0413${'3011'}${'a00f'}${'300d'}820b${Buffer.from('bank.exampl').toString('hex')}`;
  const length = (5 + critical.length / 2 + limits.length / 2).toString(16);
  return der(`30${length}0603551d1e${critical}${limits}`);
};
/** 1.2.3, an unknown extension. */
const strange = (critical: string): Buffer =>
  critical === '' ? der('300806022a0304020500') : der(`300b06022a03${critical}04020500`);

interface Extensions {
  readonly top?: readonly Buffer[];
  readonly authority?: readonly Buffer[];
  readonly holder?: readonly Buffer[];
}

/** Whether a chain of leaf and middle gives a key when its certificates have these extensions. */
function leads({ top = [], authority = [], holder = [] }: Extensions): boolean {
  const certificate = (issuer: string, subject: string, keys: typeof leaf, extensions: readonly Buffer[], by = root) =>
    new X509Certificate(makeCertificate({ issuer, subject, publicKey: keys.publicKey, extensions }, by.privateKey));
  const roots = [certificate('Root', 'Root', root, [AUTHORITY, ...top])];
  const chain = [
    certificate('Middle', 'leaf', leaf, [NAMES, ...holder], middle),
    certificate('Root', 'Middle', middle, [AUTHORITY, ...authority]),
  ];
  return createChainKeys({ host: HOST, roots }, Date.now)(chain.map(({ raw }) => raw.toString('base64'))) !== undefined;
}

describe('limits of certificates', () => {
  const ROWS: readonly (readonly [what: string, extensions: Extensions, leads: boolean])[] = [
    ['none', {}, true],
    ['a leaf that may sign', { holder: [usage('80')] }, true],
    ['a leaf that may sign and more', { holder: [usage('88', '')] }, true],
    ['a leaf that may agree on keys only', { holder: [usage('08')] }, false],
    ['a leaf that may agree on keys only, not critical', { holder: [usage('08', '')] }, false],
    ['a leaf with both', { holder: [usage('80'), usage('08')] }, false],
    ['a leaf whose usage is a number', { holder: [der('300e0603551d0f0101ff040402020080')] }, false],
    ['an authority that may sign certificates', { authority: [usage('06')] }, true],
    ['an authority that may sign lists only', { authority: [usage('02')] }, false],
    ['an authority that is bound to names', { authority: [names(TRUE)] }, false],
    ['an authority that is bound to names, not critical', { authority: [names('')] }, false],
    ['a root that is bound to names', { top: [names(TRUE)] }, true],
    ['a critical extension of the leaf that is unknown', { holder: [strange(TRUE)] }, false],
    ['a critical extension of the authority that is unknown', { authority: [strange(TRUE)] }, false],
    ['a critical extension 1.2.3.15', { holder: [der(`300c06032a030f${TRUE}04020500`)] }, false],
    ['an unknown extension', { authority: [strange('')], holder: [strange('')] }, true],
  ];
  for (const [what, extensions, expected] of ROWS)
    it(`${what}: ${expected ? 'a key' : 'no key'}`, () => assert.equal(leads(extensions), expected));
});

/** Bytes that the parser before would refuse: the limits do not depend on it. */
describe('the bytes of a limit', () => {
  const USAGE = '0603551d0f';
  const rows: readonly (readonly [what: string, bytes: string, maySign: boolean])[] = [
    ['a usage at the very beginning', `${USAGE}0404030207${'80'}`, true],
    ['a usage at the very beginning that is none', `${USAGE}0404030207${'08'}`, false],
    ['a usage in no octets', `${USAGE}0504030207${'80'}`, false],
    ['a usage in no bits', `${USAGE}0404020207${'80'}`, false],
  ];
  for (const [what, bytes, expected] of rows)
    it(`${what}: ${expected ? 'may' : 'may not'} sign`, () => assert.equal(maySign(der(bytes)), expected));

  it('a critical extension that is known, at the very beginning', () =>
    assert.equal(isUnderstood(der(`${USAGE}${TRUE}04`)), true));
  it('a critical extension without a name', () => assert.equal(isUnderstood(der(`${TRUE}04`)), false));
  it('a critical extension of another family whose last byte is a known one', () =>
    assert.equal(isUnderstood(der(`06032a030f${TRUE}04`)), false));
});
