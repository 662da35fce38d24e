import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { describe, it } from 'node:test';
import { createChainKeys } from '../../../../src/mandates/ap2/x5c.ts';
import { authorityExtension, makeCertificate, namesExtension, type Statement } from '../../../support/certificates.ts';

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
