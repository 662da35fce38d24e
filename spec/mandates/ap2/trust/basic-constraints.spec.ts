import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { describe, it } from 'node:test';
import { pathLength } from '../../../../src/mandates/ap2/trust/x5c.ts';
import { authorityExtension, makeCertificate } from '../../../support/certificates.ts';

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
    ['a bound of what does not say it is an authority', `${ID}04053003020103`, 3],
    ['nothing said', `${ID}04023000`, Number.POSITIVE_INFINITY],
    ['no octet string', `${ID}03083006${TRUE}020103`, -1],
    ['no sequence', `${ID}04083106${TRUE}020103`, -1],
    ['neither', `${ID}03083106${TRUE}020103`, -1],
    ['a bound that is no integer', `${ID}04083006${TRUE}030103`, -1],
    ['something behind the bound', `${ID}040b3009${TRUE}020103020101`, -1],
  ];
  for (const [what, hex, length] of texts)
    it(`with ${what} is ${length}`, () => assert.equal(pathLength(Buffer.from(`3000${hex}`, 'hex')), length));
});
