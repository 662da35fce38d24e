import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import type { Response } from 'express';
import { a2aResponseWriter, deliveredData } from '../../../src/adapters/a2a/response-writer.ts';
import { readContent } from '../../../src/adapters/json-rpc/answer-content.ts';
import { type BackendAnswer, BackendError, type BackendFailure } from '../../../src/backend/exchange.ts';
import { createAnswerBudget } from '../../../src/server/limits/load-shedding.ts';

const JSON_TYPE = 'application/json';

const SPELLING = '{ "n": 12345678901234567890, "p": 1.50 }';
const BYTES = '"value":"YWJj","encoding":"base64"';

describe('the answer of the backend, as the data of a part', () => {
  for (const [what, sent, type, data, encoding] of [
    ['an object, in its own spelling', SPELLING, JSON_TYPE, SPELLING],
    ['a list', '[1.50]', JSON_TYPE, '{"value":[1.50]}'],
    ['a JSON text', '"a\\u00fc"', JSON_TYPE, '{"value":"a\\u00fc"}'],
    ['JSON null', 'null', JSON_TYPE, '{"value":null}'],
    ['another type of JSON', '{"a":1}', 'application/problem+json', '{"a":1}'],
    ['a text', 'Grüß "Gott"\n', 'text/plain; charset=utf-8', '{"value":"Grüß \\"Gott\\"\\n"}'],
    ['malformed JSON', '{', JSON_TYPE, '{"value":"{"}'],
    ['an empty answer', '', JSON_TYPE, '{"value":null}'],
    ['bytes', 'abc', 'image/png', `{${BYTES},"mediaType":"image/png"}`],
    ['compressed JSON', 'abc', JSON_TYPE, `{${BYTES},"mediaType":"application/json","contentEncoding":"gzip"}`, 'gzip'],
  ] as const)
    it(what, () => assert.equal(deliveredData(readContent(Buffer.from(sent), type, encoding)), data));
});

/** An answer that fails after its first bytes. */
function brokenAnswer(reason: BackendFailure): BackendAnswer {
  const body = new PassThrough();
  body.write('{"half":');
  queueMicrotask(() => body.destroy(new BackendError(reason, true)));
  return { status: 200, headers: { 'content-type': JSON_TYPE }, body };
}

describe('the relay of an answer that breaks off', () => {
  // Any use of the response fails: nothing may be sent.
  const untouched = new Proxy({}, { get: (_, name) => assert.fail(`res.${String(name)}`) }) as Response;
  const budget = createAnswerBudget(1_048_576);
  const writer = a2aResponseWriter(untouched, { id: 1, requestId: 'r', resourceId: 'cities' }, budget);

  for (const reason of ['transport', 'timeout', 'response_too_large'] as const)
    it(`${reason}: broken, and nothing was sent`, async () => {
      const relayed = await writer.relay(brokenAnswer(reason), {});
      assert.equal(relayed.kind === 'broken' && relayed.error.reason, reason);
    });

  it('aborted because the caller left: no failure of the backend', async () =>
    assert.deepEqual(await writer.relay(brokenAnswer('aborted'), {}), { kind: 'client_gone' }));
});
