import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import type { BackendAnswer } from '../../../src/backend/exchange.ts';
import { toldByBackend } from '../../../src/pipeline/middleware/forward.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const MOST_BYTES = 4_096;
/** A JSON text of so many bytes. */
const ofBytes = (bytes: number): string => JSON.stringify('x'.repeat(bytes - 2));

/** An answer as a stream in pieces of 1,000 bytes, or as a whole. */
function answered(text: string | Uint8Array, { status = 404, headers = JSON_TYPE as object, whole = false } = {}) {
  const bytes = Buffer.from(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / 1_000) }, (_, at) =>
    bytes.subarray(at * 1_000, at * 1_000 + 1_000),
  );
  const body = Readable.from(pieces, { objectMode: false });
  const answer = { status, headers, body, ...(whole ? { whole: bytes } : {}) } as BackendAnswer;
  return { answer, body };
}

describe('what a backend says of its failure', () => {
  for (const whole of [false, true])
    it(`is its JSON body up to ${MOST_BYTES} bytes, ${whole ? 'as a whole' : 'as a stream'}`, async () => {
      const text = ofBytes(MOST_BYTES);
      assert.deepEqual(await toldByBackend(answered(text, { whole }).answer), { status: 404, body: JSON.parse(text) });
      const larger = answered(ofBytes(MOST_BYTES + 1), { whole });
      assert.equal(await toldByBackend(larger.answer), undefined);
      if (!whole) assert.ok(larger.body.destroyed, 'its connection is let go');
    });

  it('has of the headers those that answers relay, without the ones of the body', async () => {
    const headers = {
      'content-type': 'application/problem+json; charset=utf-8',
      'content-length': '2',
      'cache-control': 'public',
      'retry-after': '3',
      'content-language': 'en',
      'set-cookie': ['a=b'],
      'x-internal': 'c',
      link: '<http://127.0.0.1:3000/>; rel="next"',
    };
    assert.deepEqual(await toldByBackend(answered('{}', { status: 503, headers }).answer), {
      status: 503,
      headers: { 'retry-after': '3', 'content-language': 'en' },
      body: {},
    });
    const long = { ...JSON_TYPE, 'retry-after': 'x'.repeat(MOST_BYTES) };
    assert.deepEqual(await toldByBackend(answered('{}', { headers: long }).answer), { status: 404, body: {} });
  });

  const NOTHING: Readonly<Record<string, ReturnType<typeof answered>>> = {
    'is no JSON by its type': answered('{}', { headers: { 'content-type': 'text/html' } }),
    'has no type': answered('{}', { headers: {} }),
    'is compressed': answered('{}', { headers: { ...JSON_TYPE, 'content-encoding': 'gzip' } }),
    'does not parse': answered('<html>'),
    'is empty': answered(''),
    'is no UTF-8': answered(Buffer.from([0x22, 0xff, 0x22])),
    'declares more than the bound': answered('{}', { headers: { ...JSON_TYPE, 'content-length': '4097' } }),
    'asks for money': answered('{"accepts":[]}', { status: 402 }),
    'sends elsewhere': answered('{}', { status: 302 }),
  };
  for (const [what, { answer, body }] of Object.entries(NOTHING))
    it(`is nothing where it ${what}`, async () => {
      assert.equal(await toldByBackend(answer), undefined);
      assert.ok(body.destroyed, 'its connection is let go');
    });

  it('is nothing where it breaks off', async () => {
    const body = Readable.from(
      (function* () {
        yield '{"a":';
        throw new Error('reset');
      })(),
    );
    assert.equal(await toldByBackend({ status: 500, headers: JSON_TYPE, body }), undefined);
  });
});
