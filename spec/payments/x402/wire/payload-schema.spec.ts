import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { prepareRecovery } from '../../../../src/payments/x402/evm/signature.ts';
import { createExaminer } from '../../../../src/payments/x402/verify/verify.ts';
import { decodeProof } from '../../../../src/payments/x402/wire/header-codec.ts';
import { replayKey } from '../../../../src/payments/x402/wire/payload-schema.ts';
import type { PaymentPayload } from '../../../../src/payments/x402/wire/types.ts';
import {
  bareV,
  CHECKED_HERE,
  freshAccount,
  highS,
  offerFor,
  otherV,
  payloadFor,
  RESOURCE_URL,
  termsFor,
} from '../signing.ts';

const terms = termsFor();
const payload = await payloadFor(freshAccount(), terms);
const { recover } = await prepareRecovery();
const examine = createExaminer({ terms, recover, ...CHECKED_HERE });

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
const text = (document: unknown, indent?: number): string => JSON.stringify(document, undefined, indent);
const encoded = (document: unknown, indent?: number): string => base64(text(document, indent));
const base64 = (json: string): string => Buffer.from(json).toString('base64');

/** Spellings of one authorization; not genuine: those whose signature the chain would refuse. */
const SPELLINGS: readonly (readonly [name: string, header: string, genuine: boolean])[] = [
  ['as signed', encoded(payload), true],
  ['without padding', encoded(payload).replace(/=+$/, ''), true],
  ['leading spaces', base64(`  ${text(payload)}`), true],
  ['indented', encoded(payload, 2), true],
  ['tabs', base64(text(payload).replaceAll(',', ',\t')), true],
  ['members in another order', encoded(backwards(payload)), true],
  ['escaped letters', base64(text(payload).replace('"nonce"', '"\\u006eonce"')), true],
  ['payer in lower case', encoded(withAuthorization({ from: lower(from) })), true],
  ['payer in upper case', encoded(withAuthorization({ from: upper(from) })), true],
  ['payee in upper case', encoded(withAuthorization({ to: upper(to) })), true],
  ['nonce in upper case', encoded(withAuthorization({ nonce: upper(nonce) })), true],
  ['signature in upper case', encoded(withSignature(upper(signature))), true],
  ['bare recovery id', encoded(withSignature(bareV(signature))), true],
  ['asset in upper case', encoded({ ...payload, accepted: { ...payload.accepted, asset: upper(terms.asset) } }), true],
  ['without resource', encoded({ ...payload, resource: undefined }), true],
  ['an empty extension list', encoded({ ...payload, extensions: {} }), true],
  ['an echoed extension', encoded({ ...payload, extensions: { bazaar: { info: {} } } }), true],
  ['high s', encoded(withSignature(highS(signature))), false],
  ['the other v', encoded(withSignature(otherV(signature))), false],
  ['v 29', encoded(withSignature(`${signature.slice(0, -2)}1d`)), false],
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
