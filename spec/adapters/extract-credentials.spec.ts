import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { describe, it } from 'node:test';
import {
  carriedProof,
  memberMandate,
  memberProof,
  oneMandate,
  oneProof,
} from '../../src/adapters/extract-credentials.ts';

const PAYLOAD = {
  x402Version: 2,
  accepted: {
    scheme: 'exact',
    network: 'eip155:84532',
    amount: '10000',
    asset: `0x${'0a'.repeat(20)}`,
    payTo: `0x${'0b'.repeat(20)}`,
    maxTimeoutSeconds: 120,
    extra: { name: 'USDC', version: '2' },
  },
  payload: {
    signature: `0x${'0c'.repeat(65)}`,
    authorization: {
      from: `0x${'0d'.repeat(20)}`,
      to: `0x${'0b'.repeat(20)}`,
      value: '10000',
      validAfter: '0',
      validBefore: '1900000000',
      nonce: `0x${'0e'.repeat(32)}`,
    },
  },
};
const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64');
const header = (value: string) => ({ kind: 'header', value }) as const;

describe('a proof in the header', () => {
  const carried = (headers: Readonly<Record<string, string>>) =>
    carriedProof({ headers, rawHeaders: Object.entries(headers).flat() } as unknown as IncomingMessage);
  it('is that of version 2, or absent', () => {
    assert.deepEqual(carried({ 'payment-signature': 'abc', 'x-payment': 'def' }), header('abc'));
    assert.deepEqual(carried({}), { kind: 'none' });
  });
  it('is told apart where it is that of version 1', () =>
    assert.deepEqual(carried({ 'x-payment': 'def' }), { kind: 'version_1', value: 'def' }));
});

describe('a proof in a member of a message', () => {
  it('is the text of the header, or the object in it', () => {
    assert.deepEqual(memberProof('abc'), header('abc'));
    assert.deepEqual(memberProof(PAYLOAD), header(base64(PAYLOAD)));
  });
  it('is absent when null or empty, and illegible as anything else', () => {
    for (const none of [undefined, null, '']) assert.deepEqual(memberProof(none), { kind: 'none' });
    for (const odd of [7, true, ['a']]) assert.deepEqual(memberProof(odd), { kind: 'illegible' });
  });
});

describe('the one proof of a call', () => {
  const none = { kind: 'none' } as const;
  it('is the first that is carried', () => {
    assert.deepEqual(oneProof(none, none), none);
    assert.deepEqual(oneProof(none, header('a'), none), header('a'));
  });
  it('may be repeated in another spelling: order of members, case of hex, padding', () => {
    const { payload, accepted, x402Version } = PAYLOAD;
    const turned = {
      payload,
      accepted: { ...accepted, asset: accepted.asset.toUpperCase().replace('0X', '0x') },
      x402Version,
    };
    const [one, other] = [header(base64(PAYLOAD)), header(base64(turned).replace(/=+$/, ''))];
    assert.notEqual(one.value, other.value);
    assert.deepEqual(oneProof(one, other, none), one);
  });
  it('must not differ or be illegible', () => {
    const second = { ...PAYLOAD, payload: { ...PAYLOAD.payload, signature: `0x${'1c'.repeat(65)}` } };
    assert.deepEqual(oneProof(header(base64(PAYLOAD)), header(base64(second))), { kind: 'conflicting' });
    assert.deepEqual(oneProof(header('a'), header('b')), { kind: 'conflicting' });
    assert.deepEqual(oneProof(header('a'), { kind: 'illegible' }), { kind: 'conflicting' });
    assert.deepEqual(oneProof(header('a'), header('a')), header('a'));
  });
});

describe('the one mandate of a call', () => {
  const none = { kind: 'none' } as const;
  const text = (value: string) => ({ kind: 'text', value }) as const;
  const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const envelope = { method: 'ap2', payload: 'a.b.c~' };

  it('in a member is the text of the header, or the object in it; an empty one counts as absent', () => {
    assert.deepEqual(memberMandate('abc'), text('abc'));
    assert.deepEqual(memberMandate(envelope), text(base64url(envelope)));
    for (const absent of [undefined, null, '']) assert.deepEqual(memberMandate(absent), none);
    for (const odd of [7, false, ['a']]) assert.deepEqual(memberMandate(odd), { kind: 'illegible' });
  });

  it('is the first that is carried, and others may repeat it in another spelling', () => {
    const turned = base64url({ payload: envelope.payload, method: envelope.method });
    assert.notEqual(turned, base64url(envelope));
    assert.deepEqual(oneMandate(none, text(turned), text(base64url(envelope)), none), text(turned));
    assert.deepEqual(oneMandate(none, none), none);
  });

  it('must not differ or be illegible', () => {
    const other = base64url({ ...envelope, payload: 'a.b.d~' });
    const conflicting = { kind: 'conflicting' };
    assert.deepEqual(oneMandate(text(base64url(envelope)), text(other)), conflicting);
    assert.deepEqual(oneMandate(text('a'), { kind: 'illegible' }), conflicting);
    assert.deepEqual(oneMandate(text('AAAA'), text('BBBB')), conflicting);
    assert.deepEqual(oneMandate(text('AAAA'), text('AAAA')), text('AAAA'));
  });
});
