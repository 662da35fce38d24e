import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { describe, it } from 'node:test';
import { createChainKeys } from '../../../src/mandates/ap2/x5c.ts';
import { authorityExtension, makeCertificate, namesExtension } from '../../support/certificates.ts';

const HOST = 'ap2.bank.example';
const NAMES = namesExtension(HOST);
const TRUE = '0101ff';
const AUTHORITY = authorityExtension();
const root = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const middle = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' });

const der = (hex: string): Buffer => Buffer.from(hex, 'hex');
/** Key usage with these bits: 80 is for signatures, 08 for agreeing on keys, 04 and 02 for certificates and lists of them. */
const usage = (bits: string, critical = TRUE): Buffer =>
  der(critical === '' ? `300b0603551d0f0404030200${bits}` : `300e0603551d0f${critical}0404030200${bits}`);
/** `permitted: other.example`. */
const names = (critical: string): Buffer => {
  const limits = `0413${'3011'}${'a00f'}${'300d'}820b${Buffer.from('bank.exampl').toString('hex')}`;
  const length = (5 + critical.length / 2 + limits.length / 2).toString(16);
  return der(`30${length}0603551d1e${critical}${limits}`);
};
/** 1.2.3, which nobody knows. */
const strange = (critical: string): Buffer =>
  critical === '' ? der('300806022a0304020500') : der(`300b06022a03${critical}04020500`);

interface Extensions {
  readonly top?: readonly Buffer[];
  readonly authority?: readonly Buffer[];
  readonly holder?: readonly Buffer[];
}

/** Whether a chain of leaf and middle leads to a key, for what its certificates say beside the necessary. */
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
    ['a leaf that says both', { holder: [usage('80'), usage('08')] }, false],
    ['a leaf whose usage is a number', { holder: [der('300e0603551d0f0101ff040402020080')] }, false],
    ['an authority that may sign certificates', { authority: [usage('06')] }, true],
    ['an authority that may sign lists only', { authority: [usage('02')] }, false],
    ['an authority that is bound to names', { authority: [names(TRUE)] }, false],
    ['an authority that is bound to names, not critical', { authority: [names('')] }, false],
    ['a root that is bound to names', { top: [names(TRUE)] }, true],
    ['a critical extension of the leaf that nobody knows', { holder: [strange(TRUE)] }, false],
    ['a critical extension of the authority that nobody knows', { authority: [strange(TRUE)] }, false],
    ['an extension that nobody knows', { authority: [strange('')], holder: [strange('')] }, true],
  ];
  for (const [what, extensions, expected] of ROWS)
    it(`${what}: ${expected ? 'a key' : 'no key'}`, () => assert.equal(leads(extensions), expected));
});
