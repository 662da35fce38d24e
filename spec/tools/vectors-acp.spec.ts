import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import type { Json, JsonObject } from '../../src/json/types.ts';
import { readCorpus } from '../../tools/vectors/acp.ts';
import { CORPUS_FILE, unless } from '../adapters/acp/validation/published.ts';
import { acgOfCheckout } from '../cli/acg.ts';

const folder = mkdtempSync(join(tmpdir(), 'acg-vectors-acp-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const ERROR = { type: 'invalid_request', code: 'x', message: '' };
const CREATE = { line_items: [{ id: 'x' }], currency: 'usd', capabilities: {} };
const SESSION = {
  ...{ id: 'x', status: 'incomplete', currency: 'usd', line_items: [], totals: [], fulfillment_options: [] },
  ...{ messages: [], links: [], capabilities: {} },
};
const NO_EXTENSIONS = { capabilities: { extensions: [] } };

function labelled(id: string, members: JsonObject): JsonObject {
  return { id, schema: 'Error', direction: 'error', valid: true, body: ERROR, source: 'own', ...members };
}

function written(cases: Json, changes: JsonObject = {}): string {
  const file = join(folder, 'corpus.json');
  writeFileSync(file, JSON.stringify({ spec: 'own cases', cases, ...changes }));
  return file;
}

function run(cases: Json) {
  return acgOfCheckout(folder, ['vectors', 'acp', written(cases)]);
}

describe('acg vectors acp', () => {
  it('finds nothing wrong where every verdict is as labelled', async () => {
    const create = { schema: 'CheckoutSessionCreateRequest', direction: 'request' };
    const list = [
      labelled('valid', {}),
      labelled('invalid', { valid: false, body: null }),
      labelled('tagged', {
        ...create,
        valid: false,
        tags: ['empty_extensions'],
        body: { ...CREATE, ...NO_EXTENSIONS },
      }),
      labelled('reason', {
        ...{ schema: 'CancelSessionRequest', direction: 'request', valid: false, tags: ['extensible_enum'] },
        body: { intent_trace: { reason_code: 'moved_house' } },
      }),
      labelled('answer', {
        ...{ schema: 'CheckoutSession', direction: 'response', valid: false, tags: ['empty_extensions'] },
        body: { ...SESSION, ...NO_EXTENSIONS },
      }),
    ];
    assert.partialDeepStrictEqual(await run(list), { code: 0, lines: ['5 cases, 0 mismatches'], errors: '' });
  });

  it('prints one line for each other verdict', async () => {
    const create = { schema: 'CheckoutSessionCreateRequest', direction: 'request' };
    const list = [
      labelled('a', { body: {} }),
      labelled('b', { valid: false }),
      labelled('untagged', { ...create, valid: false, body: { ...CREATE, ...NO_EXTENSIONS } }),
      labelled('too much', { ...create, valid: false, tags: ['empty_extensions'], body: {} }),
    ];
    assert.partialDeepStrictEqual(await run(list), {
      code: 1,
      lines: [
        'a Error: strict expected valid, was invalid ($.type is required)',
        'a Error: wire expected valid, was invalid ($.type is required)',
        'b Error: strict expected invalid, was valid',
        'b Error: wire expected invalid, was valid',
        'untagged CheckoutSessionCreateRequest: wire expected invalid, was valid',
        'too much CheckoutSessionCreateRequest: wire expected valid, was invalid ($.line_items is required)',
        '4 cases, 6 mismatches',
      ],
      errors: '',
    });
  });

  for (const [what, list, changes, message] of [
    ['an unknown schema', [labelled('x', { schema: 'Cart' })], {}, /cases\[0\]\.schema "Cart" is not known/],
    ['no verdict', [labelled('x', { valid: 'yes' })], {}, /cases\[0\]\.valid must be true or false/],
    ['no id', [labelled('x', { id: 7 })], {}, /cases\[0\]\.id must be a text/],
    ['another direction', [labelled('x', { direction: 'up' })], {}, /direction must be one of request, response/],
    ['tags that are none', [labelled('x', { tags: 'x' })], {}, /cases\[0\]\.tags must be a list of texts/],
    ['two cases of one id', [labelled('x', {}), labelled('x', {})], {}, /one id: x/],
    ['no document', [{ id: 'x', schema: 'Error', direction: 'error', valid: true }], {}, /cases\[0\]\.body is missing/],
    ['a case that is none', [7], {}, /the file\.cases must be a list of objects/],
    ['no cases', [], {}, /has no cases/],
    ['no specification', [labelled('x', {})], { spec: null }, /the file\.spec must be a text/],
  ] as const)
    it(`names what is wrong in a file: ${what}`, () => {
      assert.throws(() => readCorpus(written(list, changes)), message);
    });

  it('ends with that message alone', async () => {
    const { code, lines, errors } = await run([labelled('x', { schema: 'Cart' })]);
    assert.deepEqual([code, lines], [1, []]);
    assert.match(errors, /^cases\[0\]\.schema "Cart" is not known \(known: .*\)\n$/);
  });

  it('tells wrong usage', async () => {
    for (const args of [['acp'], ['acp', 'f', 'g'], ['acp', 'f', '--redis', 'redis://127.0.0.1:1']])
      assert.equal((await acgOfCheckout(folder, ['vectors', ...args])).code, 64, args.join(' '));
  });

  it('finds nothing wrong in the labelled documents of the official schema', {
    skip: unless(CORPUS_FILE, 'the labelled documents were NOT checked'),
  }, async () => {
    const { code, lines, errors } = await acgOfCheckout(folder, ['vectors', 'acp', CORPUS_FILE]);
    assert.match(lines.join(), /^[1-9]\d* cases, 0 mismatches$/);
    assert.deepEqual([code, errors], [0, '']);
  });
});
