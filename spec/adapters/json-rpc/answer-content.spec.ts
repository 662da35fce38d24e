import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readContent } from '../../../src/adapters/json-rpc/answer-content.ts';

const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8');
const LATIN = Buffer.from('Grüß', 'latin1');

describe('the answer of a backend as content', () => {
  it('JSON keeps its spelling beside its value', () => {
    const text = '{ "id": 12345678901234567890, "price": 1.10 }';
    const content = readContent(utf8(text), 'application/json; charset=utf-8', undefined);
    assert.deepEqual(content, { kind: 'json', text, value: JSON.parse(text) });
  });
  it('a +json type is JSON, and so is JSON without a type', () => {
    for (const type of ['application/problem+json', 'application/vnd.x+json;v=1', undefined])
      assert.equal(readContent(utf8('[1]'), type, undefined).kind, 'json');
  });
  it('malformed JSON is text', () => {
    assert.deepEqual(readContent(utf8('{oops'), 'application/json', undefined), {
      kind: 'text',
      text: '{oops',
      mediaType: 'application/json',
    });
  });
  it('text is read in its charset, and anything else is bytes', () => {
    const read = readContent(LATIN, 'text/plain; charset=iso-8859-1', undefined);
    assert.equal(read.kind === 'text' && read.text, 'Grüß');
    assert.equal(readContent(LATIN, 'text/plain', undefined).kind, 'bytes');
    assert.equal(readContent(utf8('x'), 'text/plain; charset=none-such', undefined).kind, 'bytes');
    assert.equal(readContent(LATIN, undefined, undefined).kind, 'bytes');
  });
  it('text with control characters is bytes', () => {
    assert.equal(readContent(utf8('a\u0001b'), 'text/plain', undefined).kind, 'bytes');
    assert.equal(readContent(utf8('a\tb\r\nc\u001b[0m'), 'text/plain', undefined).kind, 'text');
  });
  it('any other type is bytes, with their type', () => {
    assert.deepEqual(readContent(Buffer.from([0, 255]), 'image/png', undefined), {
      kind: 'bytes',
      base64: 'AP8=',
      mediaType: 'image/png',
      contentEncoding: undefined,
    });
  });
  it('compressed JSON stays bytes, with its coding', () => {
    const content = readContent(utf8('x'), 'application/json', 'gzip');
    assert.equal(content.kind === 'bytes' && content.contentEncoding, 'gzip');
    assert.equal(readContent(utf8('1'), 'application/json', 'identity').kind, 'json');
  });
  it('an answer without bytes is empty', () => {
    assert.deepEqual(readContent(Buffer.alloc(0), 'application/json', undefined), { kind: 'empty' });
  });
});
