import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  decodeProof,
  encodeProof,
  MAX_PROOF_BYTES,
  replayKey,
  replayKeys,
} from '../../../../src/payments/x402/wire/proof.ts';
import type { PaymentPayload } from '../../../../src/payments/x402/wire/types.ts';
import { bareV, freshAccount, highS, otherV, payloadFor, RESOURCE_URL, termsFor } from '../signing.ts';

const payload = await payloadFor(freshAccount(), termsFor());
const json = JSON.stringify(payload);

/** Sixteen base64 characters and an unused half byte, so that non-canonical spellings exist. */
const padded = Buffer.from(json.length % 3 === 1 ? json : `${json}${' '.repeat((4 - (json.length % 3)) % 3)}`).toString(
  'base64',
);

describe('the base64 of a proof', () => {
  assert.ok(padded.endsWith('=='));
  const bare = padded.slice(0, -2);
  const spellings: readonly (readonly [name: string, value: string, accepted: boolean])[] = [
    ['standard with padding', padded, true],
    ['standard without padding', bare, true],
    ['half of the padding', `${bare}=`, false],
    ['more padding', `${padded}=`, false],
    ['unused bits set', `${bare.slice(0, -1)}${nextCharacter(bare.at(-1))}==`, false],
    ['trailing characters', `${padded}garbage`, false],
    ['a space inside', `${padded.slice(0, 8)} ${padded.slice(8)}`, false],
    ['a line break at the end', `${padded}\n`, false],
    ['the url alphabet', `${padded.slice(0, 4)}-_-_${padded.slice(8)}`, false],
    ['a data url', `data:application/json;base64,${padded}`, false],
    ['nothing', '', false],
  ];
  for (const [name, value, accepted] of spellings)
    it(`${accepted ? 'accepts' : 'refuses'}: ${name}`, () => {
      const decoded = decodeProof(value);
      if (accepted) assert.equal(decoded.kind, 'decoded');
      else assert.partialDeepStrictEqual(decoded, { kind: 'unreadable', reason: 'invalid_payload' });
    });
});

describe('the size of a proof', () => {
  const ofSize = (bytes: number): string => {
    const room = (bytes / 4) * 3;
    const filled = JSON.stringify({ ...payload, extensions: { note: { text: '' } } });
    const text = 'x'.repeat(room - filled.length);
    return encodeProof(JSON.parse(JSON.stringify({ ...payload, extensions: { note: { text } } })));
  };
  it(`is at most ${MAX_PROOF_BYTES} bytes`, () => {
    const largest = ofSize(MAX_PROOF_BYTES);
    assert.equal(largest.length, MAX_PROOF_BYTES);
    assert.equal(decodeProof(largest).kind, 'decoded');
    assert.deepEqual(decodeProof(ofSize(MAX_PROOF_BYTES + 4)), {
      ...{ kind: 'unreadable', reason: 'invalid_payload' },
      fault: 'it must have at most 8192 bytes',
    });
  });
});

describe('the JSON of a proof', () => {
  const texts: readonly (readonly [name: string, text: string])[] = [
    ['no JSON', '{'],
    ['an array', '[]'],
    ['a string', '"proof"'],
    ['a member twice', json.replace('{', '{"x402Version":2,')],
    ['__proto__', json.replace('{', '{"__proto__":{},')],
    ['a byte order mark', `\ufeff${json}`],
    ['two documents', `${json}${json}`],
  ];
  for (const [name, text] of texts)
    it(`refuses ${name}`, () => {
      assert.equal(decodeProof(Buffer.from(text).toString('base64')).kind, 'unreadable');
    });
});

/** Sets the member at `path` (undefined removes it) and reads the proof. */
function read(path: string, value: unknown) {
  const document = structuredClone(payload) as unknown as Record<string, unknown>;
  const names = path.split('.');
  const last = names.pop() ?? '';
  let parent = document;
  for (const name of names) parent = parent[name] as Record<string, unknown>;
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return decodeProof(Buffer.from(JSON.stringify(document)).toString('base64'));
}

describe('the shape of a proof', () => {
  const wrong: readonly (readonly [path: string, values: readonly unknown[], reason?: string])[] = [
    ['x402Version', [1, 3, '2', null, undefined], 'invalid_x402_version'],
    ['accepted.scheme', ['upto', 'EXACT', ''], 'invalid_scheme'],
    ['accepted.scheme', [1, undefined]],
    ['accepted', [null, [], 'exact', undefined]],
    ['accepted.network', [1, undefined]],
    ['accepted.amount', [10_000, '-1', '1e4', '10000.0', '0x2710', ' 10000', '', '١٠', '1'.repeat(79), undefined]],
    ['accepted.asset', ['0x12', 'USDC', 1, undefined]],
    ['accepted.payTo', ['0x12', null, undefined]],
    ['accepted.maxTimeoutSeconds', ['120', undefined]],
    ['accepted.extra', ['none', []]],
    ['resource', ['https://shop.example', {}, [], { url: 1 }]],
    ['payload', [null, {}, [], undefined]],
    ['payload.signature', ['', '0x', '0x123', 'ab', `0x${'zz'.repeat(65)}`, 1, undefined]],
    ['payload.authorization', [null, {}, undefined]],
    ['payload.authorization.from', ['0x', `0x${'a'.repeat(41)}`, 'a'.repeat(40), 5, undefined]],
    ['payload.authorization.to', ['0x', undefined]],
    ['payload.authorization.value', [1, '01', '-1', '1.0', '1e3', '', '٣', (2n ** 256n).toString(), undefined]],
    ['payload.authorization.validAfter', [0, '00', '-1', 'now', undefined]],
    ['payload.authorization.validBefore', [1, '1.5', '9'.repeat(79), undefined]],
    ['payload.authorization.nonce', ['0x', `0x${'a'.repeat(63)}`, `0x${'a'.repeat(65)}`, '1', undefined]],
    ['extensions', [[], 'none', 1]],
    ['extensions', [{ 'payment-identifier': 'order' }, { 'payment-identifier': { info: null } }]],
    ['extensions', [{ 'payment-identifier': {} }, { 'payment-identifier': { info: { id: 'short' } } }]],
    ['extensions', [{ 'payment-identifier': { info: { id: 'a'.repeat(129) } } }]],
    ['extensions', [{ 'payment-identifier': { info: { id: `${'a'.repeat(16)}!` } } }]],
  ];
  for (const [path, values, reason = 'invalid_payload'] of wrong)
    it(`refuses ${path} = ${values
      .map((value) => JSON.stringify(value) ?? 'absent')
      .join(' | ')
      .slice(0, 90)}`, () => {
      for (const value of values) {
        const decoded = read(path, value);
        assert.partialDeepStrictEqual(decoded, { kind: 'unreadable', reason });
        // The member that is wrong, or one in it.
        const fault = (decoded.kind === 'unreadable' ? decoded.fault : undefined) ?? '';
        if (reason === 'invalid_payload') assert.ok(fault.startsWith(path), `${path}: ${fault}`);
      }
    });

  it('says which member is wrong, and what would be right', () => {
    const faultOf = (header: string) => {
      const decoded = decodeProof(header);
      return decoded.kind === 'unreadable' ? decoded.fault : undefined;
    };
    assert.equal(faultOf(JSON.stringify(payload)), 'it must be the base64 of its JSON, not the JSON itself');
    assert.partialDeepStrictEqual(read('payload.authorization.value', 1), {
      fault: 'payload.authorization.value must be a decimal string without leading zeros, below 2^256',
    });
    assert.partialDeepStrictEqual(read('accepted', undefined), {
      fault: 'accepted is missing: it must be the entry of accepts that is paid',
    });
    assert.partialDeepStrictEqual(read('accepted.maxTimeoutSeconds', undefined), {
      fault: 'accepted.maxTimeoutSeconds is missing: it must be a number, as in accepts',
    });
  });

  const right: readonly (readonly [path: string, value: unknown])[] = [
    ['resource', undefined],
    ['resource', { url: 'https://shop.example', description: 'x', mimeType: 'text/csv', tags: [] }],
    ['accepted.amount', '00010000'],
    ['accepted.extra', null],
    ['payload.authorization.value', (2n ** 256n - 1n).toString()],
    ['payload.signature', `0x${'ab'.repeat(900)}`],
    ['extensions', {}],
    ['extensions', { bazaar: { info: {}, schema: {} } }],
    ['extensions', { 'payment-identifier': { info: { required: false } } }],
    ['extensions', { 'payment-identifier': null }],
  ];
  for (const [path, value] of right)
    it(`accepts ${path} = ${JSON.stringify(value)?.slice(0, 60) ?? 'absent'}`, () => {
      assert.equal(read(path, value).kind, 'decoded');
    });

  /** A member that no document has. */
  const marked = { canary: 'unknown-member' };
  const unknown: readonly (readonly [where: string, path: string, value: unknown])[] = [
    ['the payload', 'tip', marked],
    ['the offer', 'accepted.discount', marked],
    ['the resource', 'resource', { url: RESOURCE_URL, method: 'POST', description: null, tags: null, ...marked }],
    ['the scheme', 'payload.permit2Authorization', marked],
    ['the authorization', 'payload.authorization.memo', marked],
    ['the extensions', 'extensions', { bazaar: marked, other: 'yes', list: [marked] }],
  ];
  for (const [where, path, value] of unknown)
    it(`drops an unknown member of ${where}`, () => {
      const nothing = { paymentIdentifier: undefined, buyerToken: undefined };
      assert.deepEqual(read(path, value), { kind: 'decoded', payload: spelledOnce(), ...nothing });
    });

  for (const path of ['resource', 'accepted.extra', 'extensions'])
    it(`takes null for ${path} as if it were absent`, () => {
      assert.deepEqual(read(path, null), read(path, undefined));
    });

  it('takes the buyer token out of the payload, and anything but a text as no token', () => {
    const echoed = read('extensions', { 'agent-commerce-buyer': { info: { token: 'T', ...marked }, schema: marked } });
    assert.deepEqual(echoed, {
      kind: 'decoded',
      payload: spelledOnce(),
      paymentIdentifier: undefined,
      buyerToken: 'T',
    });
    const others = [null, 7, 'T', [], {}, { token: 'T' }, { info: null }, { info: 'T' }, { info: { token: 7 } }];
    for (const other of others) {
      const decoded = read('extensions', { 'agent-commerce-buyer': other });
      assert.ok(decoded.kind === 'decoded', JSON.stringify(other));
      assert.equal(decoded.buyerToken, undefined);
    }
  });

  it('reads the payment identifier that the buyer chose, and keeps nothing else of it', () => {
    const id = 'order_0123456789-ABC';
    const identifier = { info: { required: false, id, ...marked }, schema: marked, ...marked };
    const extensions = { 'payment-identifier': { info: { id } } };
    assert.deepEqual(read('extensions', { 'payment-identifier': identifier }), {
      kind: 'decoded',
      payload: { ...spelledOnce(), extensions },
      paymentIdentifier: id,
      buyerToken: undefined,
    });
  });

  it('gives every value its canonical spelling', () => {
    const { from } = payload.payload.authorization;
    const decoded = read('payload.authorization.from', `0x${from.slice(2).toUpperCase()}`);
    assert.equal(decoded.kind === 'decoded' && decoded.payload.payload.authorization.from, from.toLowerCase());
  });
});

describe('the reader of proofs', () => {
  it('answers anything with a verdict, never with an exception', () => {
    const anyJson = fc.json({ maxDepth: 4 }).map((text) => Buffer.from(text).toString('base64'));
    const anyHeader = fc.oneof(fc.string({ unit: 'binary' }), fc.base64String(), anyJson);
    fc.assert(
      fc.property(anyHeader, (header) => {
        assert.equal(decodeProof(header).kind, 'unreadable');
      }),
      { numRuns: 2_000 },
    );
  });

  it('reads what it wrote', () => {
    const once = decodeProof(encodeProof(payload));
    assert.ok(once.kind === 'decoded');
    assert.deepEqual(decodeProof(encodeProof(once.payload)), once);
  });
});

/** The payload of these specs as it is decoded: hex in lower case, of the resource the URL only. */
function spelledOnce(): object {
  const lower = JSON.parse(
    JSON.stringify(payload).replace(/"0x[0-9a-fA-F]+"/g, (hex) => hex.toLowerCase()),
  ) as PaymentPayload;
  return { ...lower, resource: { url: RESOURCE_URL } };
}

/** Another last character of the same two meaningful bits. */
function nextCharacter(character: string | undefined): string {
  return String.fromCharCode((character ?? 'A').charCodeAt(0) + 1);
}

const terms = termsFor();
const given = await payloadFor(freshAccount(), terms);

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
  const { signature, authorization } = given.payload;
  return { ...given, payload: { signature, authorization: { ...authorization, ...changes } } };
}

function withSignature(signature: string): PaymentPayload {
  return { ...given, payload: { ...given.payload, signature } };
}

const { signature, authorization } = given.payload;
const { from, to, nonce } = authorization;
const text = (document: unknown, indent?: number): string => JSON.stringify(document, undefined, indent);
const encoded = (document: unknown, indent?: number): string => base64(text(document, indent));
const base64 = (json: string): string => Buffer.from(json).toString('base64');

/** Spellings of one authorization. */
const SPELLINGS: readonly (readonly [name: string, header: string])[] = [
  ['as signed', encoded(given)],
  ['without padding', encoded(given).replace(/=+$/, '')],
  ['leading spaces', base64(`  ${text(given)}`)],
  ['indented', encoded(given, 2)],
  ['tabs', base64(text(given).replaceAll(',', ',\t'))],
  ['members in another order', encoded(backwards(given))],
  ['escaped letters', base64(text(given).replace('"nonce"', '"\\u006eonce"'))],
  ['payer in lower case', encoded(withAuthorization({ from: lower(from) }))],
  ['payer in upper case', encoded(withAuthorization({ from: upper(from) }))],
  ['payee in upper case', encoded(withAuthorization({ to: upper(to) }))],
  ['nonce in upper case', encoded(withAuthorization({ nonce: upper(nonce) }))],
  ['signature in upper case', encoded(withSignature(upper(signature)))],
  ['bare recovery id', encoded(withSignature(bareV(signature)))],
  ['asset in upper case', encoded({ ...given, accepted: { ...given.accepted, asset: upper(terms.asset) } })],
  ['without resource', encoded({ ...given, resource: undefined })],
  ['an empty extension list', encoded({ ...given, extensions: {} })],
  ['an echoed extension', encoded({ ...given, extensions: { bazaar: { info: {} } } })],
  ['high s', encoded(withSignature(highS(signature)))],
  ['the other v', encoded(withSignature(otherV(signature)))],
  ['v 29', encoded(withSignature(`${signature.slice(0, -2)}1d`))],
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

  for (const [name, header] of SPELLINGS)
    it(`is one for one authorization: ${name}`, () => {
      const decoded = decodeProof(header);
      assert.ok(decoded.kind === 'decoded');
      const { chainId, asset } = terms;
      assert.deepEqual([...replayKeys(decoded.payload, [terms])], [replayKey({ chainId, asset, from, nonce })]);
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
