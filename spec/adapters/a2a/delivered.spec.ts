import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { deliveredData } from '../../../src/adapters/a2a/response-writer.ts';
import { readContent } from '../../../src/adapters/json-rpc/answer-content.ts';

const JSON_TYPE = 'application/json';

/** What the merchant sent, with its type and encoding, and the data that a task carries. */
const ANSWERS: readonly (readonly [
  what: string,
  sent: string,
  type: string,
  encoding: string | undefined,
  data: string,
])[] = [
  [
    'an object, in its own spelling',
    '{ "n": 12345678901234567890, "p": 1.50 }',
    JSON_TYPE,
    undefined,
    '{ "n": 12345678901234567890, "p": 1.50 }',
  ],
  ['a list', '[1.50]', JSON_TYPE, undefined, '{"value":[1.50]}'],
  ['a JSON text', '"a\\u00fc"', JSON_TYPE, undefined, '{"value":"a\\u00fc"}'],
  ['JSON null', 'null', JSON_TYPE, undefined, '{"value":null}'],
  ['JSON of another name', '{"a":1}', 'application/problem+json', undefined, '{"a":1}'],
  ['a text', 'Grüß "Gott"\n', 'text/plain; charset=utf-8', undefined, '{"value":"Grüß \\"Gott\\"\\n"}'],
  ['what is no JSON although it says so', '{', JSON_TYPE, undefined, '{"value":"{"}'],
  ['nothing', '', JSON_TYPE, undefined, '{"value":null}'],
  ['bytes', 'abc', 'image/png', undefined, '{"value":"YWJj","encoding":"base64","mediaType":"image/png"}'],
  [
    'what came compressed unasked',
    'abc',
    JSON_TYPE,
    'gzip',
    '{"value":"YWJj","encoding":"base64","mediaType":"application/json","contentEncoding":"gzip"}',
  ],
];

describe('what the merchant answered, as the data of a part', () => {
  for (const [what, sent, type, encoding, data] of ANSWERS)
    it(what, () => assert.equal(deliveredData(readContent(Buffer.from(sent), type, encoding)), data));
});
