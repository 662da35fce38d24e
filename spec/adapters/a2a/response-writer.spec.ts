import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import type { Response } from 'express';
import { a2aResponseWriter, deliveredData } from '../../../src/adapters/a2a/response-writer.ts';
import { newTask } from '../../../src/adapters/a2a/task.ts';
import { readContent } from '../../../src/adapters/json-rpc/answer-content.ts';
import { type BackendAnswer, BackendError, type BackendFailure } from '../../../src/backend/types.ts';
import { createAnswerBudget } from '../../../src/server/load-shedding/answer-budget.ts';

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

/** An answer that ends with a failure after its first bytes. */
function brokenAnswer(reason: BackendFailure): BackendAnswer {
  const body = new PassThrough();
  body.write('{"half":');
  queueMicrotask(() => body.destroy(new BackendError(reason, true)));
  return { status: 200, headers: { 'content-type': 'application/json' }, body };
}

const NEW = { parked: false, open: false, refuseTaken: () => assert.fail('no task is parked') } as const;

describe('the relay of an answer that breaks off', () => {
  // Whatever is touched of the response shows as a failure: nothing may have been sent.
  const untouched = new Proxy({}, { get: (_, name) => assert.fail(`res.${String(name)}`) }) as Response;
  const budget = createAnswerBudget(1_048_576);
  const call = { id: 1, requestId: 'r', resourceId: 'cities', task: newTask(), ...NEW };

  for (const reason of ['transport', 'timeout', 'response_too_large'] as const)
    it(`${reason}: broken, and nothing was sent`, async () => {
      const relayed = await a2aResponseWriter(untouched, call, budget).relay(brokenAnswer(reason), {});
      assert.equal(relayed.kind === 'broken' && relayed.error.reason, reason);
    });

  it('ended by ourselves because the caller left: no failure of the merchant', async () => {
    assert.deepEqual(await a2aResponseWriter(untouched, call, budget).relay(brokenAnswer('aborted'), {}), {
      kind: 'client_gone',
    });
  });
});
