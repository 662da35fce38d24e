import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { prepareRecovery } from '../../../../src/payments/x402/evm/signature.ts';
import { createExaminer } from '../../../../src/payments/x402/verify/verify.ts';
import { decodeProof } from '../../../../src/payments/x402/wire/header-codec.ts';
import { replayKey } from '../../../../src/payments/x402/wire/payload-schema.ts';
import type { PaymentPayload } from '../../../../src/payments/x402/wire/types.ts';
import { freshAccount, NOBODY_TO_ASK, offerFor, payloadFor, RESOURCE_URL, termsFor } from '../signing.ts';

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const terms = termsFor();
const payload = await payloadFor(freshAccount(), terms);
const { recover } = await prepareRecovery();
const examine = createExaminer({ terms, recover, ...NOBODY_TO_ASK });

const upper = (hex: string): string => `0x${hex.slice(2).toUpperCase()}`;
const lower = (hex: string): string => hex.toLowerCase();
const backwards = (value: unknown): unknown =>
  typeof value !== 'object' || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([name, member]) => [name, backwards(member)]),
      );

function withAuthorization(changes: Partial<PaymentPayload['payload']['authorization']>): PaymentPayload {
  const { signature, authorization } = payload.payload;
  return { ...payload, payload: { signature, authorization: { ...authorization, ...changes } } };
}

function withSignature(signature: string): PaymentPayload {
  return { ...payload, payload: { ...payload.payload, signature } };
}

const { signature, authorization } = payload.payload;
const { from, to, nonce } = authorization;
const v = signature.slice(-2);
const text = (document: unknown, indent?: number): string => JSON.stringify(document, undefined, indent);
const base64 = (json: string): string => Buffer.from(json).toString('base64');

/**
 * Twenty spellings of one authorization; those the chain would refuse have the same key too, and no
 * genuine signature.
 */
const SPELLINGS: readonly (readonly [name: string, header: string, genuine: boolean])[] = [
  ['as signed', base64(text(payload)), true],
  ['without padding', base64(text(payload)).replace(/=+$/, ''), true],
  ['leading spaces', base64(`  ${text(payload)}`), true],
  ['indented', base64(text(payload, 2)), true],
  ['tabs', base64(text(payload).replaceAll(',', ',\t')), true],
  ['members in another order', base64(text(backwards(payload))), true],
  ['escaped letters', base64(text(payload).replace('"nonce"', '"\\u006eonce"')), true],
  ['payer in lower case', base64(text(withAuthorization({ from: lower(from) }))), true],
  ['payer in upper case', base64(text(withAuthorization({ from: upper(from) }))), true],
  ['payee in upper case', base64(text(withAuthorization({ to: upper(to) }))), true],
  ['nonce in upper case', base64(text(withAuthorization({ nonce: upper(nonce) }))), true],
  ['signature in upper case', base64(text(withSignature(upper(signature)))), true],
  ['bare recovery id', base64(text(withSignature(`${signature.slice(0, -2)}0${v === '1b' ? 0 : 1}`))), true],
  [
    'asset in upper case',
    base64(text({ ...payload, accepted: { ...payload.accepted, asset: upper(terms.asset) } })),
    true,
  ],
  ['without resource', base64(text({ ...payload, resource: undefined })), true],
  ['an empty extension list', base64(text({ ...payload, extensions: {} })), true],
  ['an echoed extension', base64(text({ ...payload, extensions: { bazaar: { info: {} } } })), true],
  ['high s', base64(text(withSignature(highS(signature)))), false],
  ['the other v', base64(text(withSignature(`${signature.slice(0, -2)}${v === '1b' ? '1c' : '1b'}`))), false],
  ['v 29', base64(text(withSignature(`${signature.slice(0, -2)}1d`))), false],
];

describe('the replay key', () => {
  it('is the SHA-256 of chain, asset, payer and nonce in lower case', () => {
    const subject = {
      chainId: 84532,
      asset: `0x${'AB'.repeat(20)}`,
      from: `0x${'CD'.repeat(20)}`,
      nonce: `0x${'EF'.repeat(32)}`,
    };
    const spelled = `x402|84532|0x${'ab'.repeat(20)}|0x${'cd'.repeat(20)}|0x${'ef'.repeat(32)}`;
    assert.equal(replayKey(subject), createHash('sha256').update(spelled).digest('hex'));
  });

  assert.equal(SPELLINGS.length, 20);
  for (const [name, header, genuine] of SPELLINGS)
    it(`is one for one authorization: ${name}`, async () => {
      const decoded = decodeProof(header);
      assert.ok(decoded.kind === 'decoded');
      const examination = examine({ decoded, offer: offerFor(terms), resourceUrl: RESOURCE_URL, nowMs: Date.now() });
      const { chainId, asset } = terms;
      assert.equal(examination.payId, replayKey({ chainId, asset, from, nonce }));
      assert.equal((await examination.checkSignature()).kind, genuine ? 'genuine' : 'refused');
    });

  it('differs with chain, asset, payer and nonce', () => {
    const subject = { chainId: 1, asset: terms.asset, from, nonce };
    const others = [
      { ...subject, chainId: 2 },
      { ...subject, asset: from },
      { ...subject, from: to },
      { ...subject, nonce: `0x${'0'.repeat(64)}` },
    ];
    assert.equal(new Set([subject, ...others].map(replayKey)).size, 5);
  });
});

function highS(low: string): string {
  const s = (ORDER - BigInt(`0x${low.slice(66, 130)}`)).toString(16).padStart(64, '0');
  return `${low.slice(0, 66)}${s}${low.endsWith('1b') ? '1c' : '1b'}`;
}
