import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json } from '../../../src/json/json.ts';
import { type CarriedMandate, carriedMember, readEnvelope } from '../../../src/mandates/ap2/envelope.ts';
import type { Reason } from '../../../src/mandates/ap2/reasons.ts';
import { refusalOf } from './cases.ts';

const LIMIT = 12_288;
const PRESENTATION = 'eyJhIjoxfQ.eyJhIjoxfQ.AAAA~';
const RIGHT = { method: 'ap2', version: '0.2', payload: PRESENTATION };

const base64url = (text: string | Uint8Array): string => Buffer.from(text as string).toString('base64url');
const carried = (value: string): CarriedMandate => ({ kind: 'text', value });
const ofJson = (value: Json): string => base64url(JSON.stringify(value));
const refusal = (text: string, limit = LIMIT): Reason | 'none' => refusalOf(() => readEnvelope(carried(text), limit));

describe('an envelope is opened', () => {
  it('with a checkout mandate alone', () =>
    assert.deepEqual(readEnvelope(carried(ofJson(RIGHT)), LIMIT), { checkout: PRESENTATION, payment: undefined }));
  it('with a payment mandate beside it', () =>
    assert.deepEqual(readEnvelope(carried(ofJson({ ...RIGHT, payment_mandate: `${PRESENTATION}x~` })), LIMIT), {
      checkout: PRESENTATION,
      payment: `${PRESENTATION}x~`,
    }));
  it('without a version, as other gateways have it', () =>
    assert.equal(refusal(ofJson({ method: 'ap2', payload: PRESENTATION })), 'none'));
  it('with white space in its JSON', () => assert.equal(refusal(base64url(` ${JSON.stringify(RIGHT)}\n`)), 'none'));
  it('up to the limit of its text, and not one character beyond', () => {
    const text = ofJson(RIGHT);
    assert.equal(refusal(text, text.length), 'none');
    assert.equal(refusal(text, text.length - 1), 'envelope_too_large');
  });
});

describe('an envelope is refused', () => {
  const text = ofJson(RIGHT);
  const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  const ROWS: readonly (readonly [string, string, Reason])[] = [
    ['empty', '', 'mandate_required'],
    ['too large, before it is decoded', ' '.repeat(LIMIT + 1), 'envelope_too_large'],
    [
      'too large because of spaces in its JSON',
      base64url(`${JSON.stringify(RIGHT)}${' '.repeat(LIMIT)}`),
      'envelope_too_large',
    ],
    ['sent twice', `${text}, ${text}`, 'envelope_encoding'],
    ['padded', `${base64url('ab')}==`, 'envelope_encoding'],
    ['in a second spelling of {}', 'e31', 'envelope_encoding'],
    ['the presentation itself', PRESENTATION, 'envelope_encoding'],
    ['no UTF-8', base64url(Uint8Array.of(0x22, 0xff, 0x22)), 'envelope_encoding'],
    ['no JSON', base64url('{"method":'), 'envelope_json'],
    ['two documents', base64url(`${JSON.stringify(RIGHT)}{}`), 'envelope_json'],
    ['a name twice', base64url(`{"method":"ap2","method":"ap2","payload":"${PRESENTATION}"}`), 'envelope_json'],
    ['a name twice in escapes', base64url('{"method":"ap2","m\\u0065thod":"ap2"}'), 'envelope_json'],
    ['__proto__', base64url(`{"method":"ap2","payload":"${PRESENTATION}","__proto__":{}}`), 'envelope_json'],
    ['five levels', base64url(`{"method":"ap2","payload":${nested(4)}}`), 'envelope_json'],
    ['four levels: legible, and no envelope', base64url(`{"method":"ap2","payload":${nested(3)}}`), 'envelope_schema'],
    ['an array', ofJson([RIGHT]), 'envelope_schema'],
    ['null', ofJson(null), 'envelope_schema'],
    ['a text', ofJson('ap2'), 'envelope_schema'],
    ['without a method', ofJson({ payload: PRESENTATION }), 'envelope_schema'],
    ['with a number as version', ofJson({ ...RIGHT, version: 0.2 }), 'envelope_schema'],
    ['with one member more', ofJson({ ...RIGHT, note: '' }), 'envelope_schema'],
    ['without a payload', ofJson({ method: 'ap2' }), 'envelope_schema'],
    ['with a payload of null', ofJson({ ...RIGHT, payload: null }), 'envelope_schema'],
    ['with a payment mandate of null', ofJson({ ...RIGHT, payment_mandate: null }), 'envelope_schema'],
    ['with a payload that is no SD-JWT', ofJson({ ...RIGHT, payload: 'a'.repeat(40) }), 'envelope_schema'],
    ['with a payload too short for one', ofJson({ ...RIGHT, payload: 'a.b.c~' }), 'envelope_schema'],
    ['with a payload of two lines', ofJson({ ...RIGHT, payload: `${PRESENTATION}\n` }), 'envelope_schema'],
    ['another method', ofJson({ ...RIGHT, method: 'ap3' }), 'unsupported_version'],
    ['another version', ofJson({ ...RIGHT, version: '0.1' }), 'unsupported_version'],
    ['a longer version', ofJson({ ...RIGHT, version: '0.2.0' }), 'unsupported_version'],
    ['an intent mandate of v0.1', ofJson({ natural_language_description: 'shoes' }), 'unsupported_version'],
    [
      'a cart mandate of v0.1 as payload',
      ofJson({ ...RIGHT, payload: { merchant_authorization: 'x' } }),
      'unsupported_version',
    ],
  ];
  for (const [what, value, reason] of ROWS) it(`${what}: ${reason}`, () => assert.equal(refusal(value), reason));

  it('a presentation shorter than any', () => {
    assert.equal(refusal(ofJson({ ...RIGHT, payload: 'aaaa.bbbb.cccc~d' })), 'none');
    assert.equal(refusal(ofJson({ ...RIGHT, payload: 'aaaa.bbbb.cccc~' })), 'envelope_schema');
  });
  it('a presentation longer than any, whatever the limit', () => {
    const payload = (length: number): string => `${PRESENTATION}${'a'.repeat(length - PRESENTATION.length)}`;
    assert.equal(refusal(ofJson({ ...RIGHT, payload: payload(24_576) }), 50_000), 'none');
    assert.equal(refusal(ofJson({ ...RIGHT, payload: payload(24_577) }), 50_000), 'envelope_schema');
  });
  it('when there is none, when it is illegible, when two differ', () => {
    const kinds = (['none', 'illegible', 'conflicting'] as const).map((kind) =>
      refusalOf(() => readEnvelope({ kind }, LIMIT)),
    );
    assert.deepEqual(kinds, ['mandate_required', 'envelope_encoding', 'envelope_encoding']);
  });
});

describe('the member _authorization carries', () => {
  it('nothing, the text of the header, or the object itself', () => {
    assert.deepEqual(carriedMember(undefined), { kind: 'none' });
    assert.deepEqual(carriedMember('abc'), { kind: 'text', value: 'abc' });
    assert.deepEqual(readEnvelope(carriedMember(RIGHT), LIMIT), { checkout: PRESENTATION, payment: undefined });
  });
  it('anything else as illegible', () => {
    for (const value of [null, 1, true, [RIGHT]]) assert.deepEqual(carriedMember(value), { kind: 'illegible' });
  });
});
