import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { describe, it } from 'node:test';
import { createChainKeys, isUnderstood, maySign, pathLength } from '../../../../src/mandates/ap2/x5c.ts';
import { authorityExtension, makeCertificate, namesExtension } from '../../../support/certificates.ts';

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

const HOST = 'ap2.bank.example';
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
