import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Json, JsonObject } from '../../src/json/json.ts';
import { amountRange, budget, recurrence } from '../../tools/mandate/maker/constraints.ts';
import { readCorpus } from '../../tools/vectors/acp.ts';
import { CORPUS_FILE, unless } from '../adapters/acp/validation/published.ts';
import { acgOfCheckout } from '../cli/acg.ts';
import { PROVIDER, publishedJwk } from '../support/ap2/keys.ts';
import { createMint } from '../support/ap2/mint.ts';
import { hashed } from '../support/ap2/oracle.ts';
import { AUDIENCE, MERCHANT, NOW, purchaseWith } from '../support/ap2/purchase.ts';
import { type Presentation, type Wishes, withReference } from '../support/ap2/wishes.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const PUBLISHED = join(import.meta.dirname, '../../../shared/vectors/ap2.json');
const folder = mkdtempSync(join(tmpdir(), 'acg-vectors-'));
let redis: TestRedis;
before(async () => {
  redis = await startRedis();
});
after(async () => {
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
});

const mint = createMint();
const { resourceId, input, price, payment } = purchaseWith();
const CALL = { resourceId, input, price, payment: { ...payment } } as unknown as JsonObject;
const REPLAYED = { expected: 'replayed', code: 'AUTHORIZATION_REPLAYED', status: 409, ap2Error: 'invalid_mandate' };
const TWICE: Wishes = {
  payment: true,
  paymentConstraints: withReference(amountRange('USDC', 10_000), budget('USDC', 0.02), recurrence('ON_DEMAND')),
};

function vector(name: string, { header }: Pick<Presentation, 'header'>, members: JsonObject): JsonObject {
  return { name, header, now: NOW, call: CALL, ...members };
}

function facts({ segments }: Presentation): JsonObject {
  const [jwt = ''] = (segments.at(-1) ?? '').split('~');
  return { reference: hashed(jwt), mandateId: hashed(jwt.slice(0, jwt.lastIndexOf('.'))) };
}

function presentedBefore(...cases: readonly (readonly [name: string, outcome: string])[]): JsonObject {
  return { before: cases.map(([name, outcome]) => ({ case: name, outcome })) };
}

/** Cases with fresh keys whose results are all as stated. */
function cases(): readonly JsonObject[] {
  const direct = mint.direct();
  const again = mint.open(TWICE);
  const [first, second, third] = [1, 2, 3].map(() => mint.close(again, TWICE)) as [
    Presentation,
    Presentation,
    Presentation,
  ];
  return [
    vector('direct', direct, { expected: 'accepted', mode: 'direct', ...facts(direct) }),
    vector('again', direct, { ...presentedBefore(['direct', 'committed']), ...REPLAYED }),
    vector('unresolved', direct, { ...presentedBefore(['direct', 'uncertain']), ...REPLAYED }),
    vector('released', direct, { ...presentedBefore(['direct', 'released']), expected: 'accepted' }),
    vector('first', first, { expected: 'accepted', mode: 'autonomous', ...facts(first) }),
    vector('second', second, { ...presentedBefore(['first', 'uncertain']), expected: 'accepted' }),
    vector('third', third, {
      ...presentedBefore(['first', 'committed'], ['second', 'uncertain']),
      ...{ expected: 'budget_exceeded', code: 'AUTHORIZATION_INVALID', status: 403 },
    }),
    vector('other reason', direct, {
      ...{ call: { ...CALL, resourceId: 'other' }, expected: 'amount_mismatch', also: ['resource_mismatch'] },
    }),
    vector('policy', direct, { policy: { paymentMandate: 'required' }, expected: 'payment_mandate_required' }),
    { name: 'absent', header: null, now: NOW, call: CALL, expected: 'mandate_required', ap2Error: null },
  ];
}

/** A file of these cases, and what `acg` makes of it. */
async function run(list: readonly Json[], changes: JsonObject = {}, ...args: readonly string[]) {
  const { provider, checkout } = mint.parties;
  const config = {
    ...{ audience: AUDIENCE, merchantId: MERCHANT.id, merchantIssuer: AUDIENCE },
    ...{ profile: 'agent-commerce/ap2/checkout/v1', clockSkewSeconds: 60, maxPresentationAgeSeconds: 300 },
    ...{ maxEnvelopeBytes: 12_288, algorithms: ['ES256'], currencies: { USDC: 6 } },
    issuers: [{ id: PROVIDER, keys: [publishedJwk(provider)] }],
    checkoutKeys: [publishedJwk(checkout)],
  };
  const file = join(folder, 'vectors.json');
  writeFileSync(file, JSON.stringify({ title: 'own cases', config, cases: list, ...changes }));
  return acgOfCheckout(folder, ['vectors', 'ap2', file, ...args]);
}

describe('acg vectors ap2', () => {
  it('finds nothing wrong where every result is as expected', async () => {
    const list = cases();
    assert.partialDeepStrictEqual(await run(list), {
      code: 0,
      lines: [`${list.length} cases, 0 mismatches`],
      errors: '',
    });
  });

  it('does the same over Redis, twice, though the first run left its entries there', async () => {
    const list = cases();
    for (const _ of [1, 2]) {
      const { code, lines, errors } = await run(list, {}, '--redis', redis.url);
      assert.deepEqual({ code, lines, errors }, { code: 0, lines: [`${list.length} cases, 0 mismatches`], errors: '' });
    }
  });

  for (const [what, members, line] of [
    ['another reason', { expected: 'nonce_mismatch' }, 'wrong: expected nonce_mismatch, was accepted'],
    ['another mode', { expected: 'accepted', mode: 'autonomous' }, 'wrong: expected mode "autonomous", was "direct"'],
    ['another id', { expected: 'accepted', mandateId: 'x' }, /^wrong: expected mandateId "x", was "[\w-]{43}"$/],
    ['another reference', { expected: 'accepted', reference: 'x' }, /^wrong: expected reference "x", was "[\w-]{43}"$/],
    [
      'another status',
      { ...presentedBefore(['right', 'committed']), ...REPLAYED, status: 403 },
      'wrong: expected status 403, was 409',
    ],
    [
      'another class',
      { ...presentedBefore(['right', 'committed']), ...REPLAYED, ap2Error: null },
      'wrong: expected ap2Error null, was "invalid_mandate"',
    ],
    [
      'another fate before',
      { ...presentedBefore(['right', 'committed'], ['right', 'committed']), ...REPLAYED },
      'wrong: right, which comes before, should be accepted and was replayed',
    ],
  ] as const)
    it(`prints one line for another result: ${what}`, async () => {
      const made = mint.direct();
      const { code, lines } = await run([
        vector('right', made, { expected: 'accepted' }),
        vector('wrong', made, members),
      ]);
      assert.equal(code, 1);
      const [first = '', counts, ...more] = lines;
      if (typeof line === 'string') assert.equal(first, line);
      else assert.match(first, line);
      assert.deepEqual([counts, more], ['2 cases, 1 mismatches', []]);
    });

  for (const [what, list, changes, message] of [
    ['an unknown member', [], { extra: 1 }, /the file\.extra is not known/],
    ['a member of a case', [vector('x', mint.direct(), { expect: 'accepted' })], {}, /cases\[0\]\.expect is not known/],
    ['a case without expectation', [vector('x', mint.direct(), {})], {}, /cases\[0\]\.expected must be a text/],
    [
      'a case before that is not there',
      [vector('x', mint.direct(), { expected: 'accepted', ...presentedBefore(['y', 'committed']) })],
      {},
      /x: there is no case y/,
    ],
    [
      'an unknown outcome',
      [vector('x', mint.direct(), { expected: 'accepted', ...presentedBefore(['x', 'lost']) })],
      {},
      /outcome must be one of committed, released, uncertain/,
    ],
    ['two cases of one name', [1, 2].map(() => vector('x', mint.direct(), { expected: 'accepted' })), {}, /one name/],
    ['a configuration that is none', [], { config: [] }, /the file\.config must be an object/],
  ] as const)
    it(`names what is wrong in a file: ${what}`, async () => {
      const { code, lines, errors } = await run(list as readonly Json[], changes as JsonObject);
      assert.deepEqual([code, lines], [1, []]);
      assert.match(errors, message);
    });

  it('tells wrong usage', async () => {
    for (const args of [[], ['x402', 'f'], ['ap2'], ['ap2', 'f', 'g'], ['ap2', 'f', '--twice']])
      assert.equal((await acgOfCheckout(folder, ['vectors', ...args])).code, 64, args.join(' '));
  });

  it('names a Redis that is not there', async () => {
    const { code, errors } = await run(cases(), {}, '--redis', 'redis://127.0.0.1:1');
    assert.equal(code, 69);
    assert.match(errors, /^the store \(redis\) cannot be used/);
  });

  it('finds nothing wrong in the published vectors', {
    skip: existsSync(PUBLISHED)
      ? false
      : 'there is no ../shared/vectors/ap2.json: the published vectors were NOT checked',
  }, async () => {
    const { code, lines, errors } = await acgOfCheckout(folder, ['vectors', 'ap2', PUBLISHED]);
    assert.match(lines.join(), /^[1-9]\d* cases, 0 mismatches$/);
    assert.deepEqual([code, errors], [0, '']);
  });
});

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

function runAcp(cases: Json) {
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
    assert.partialDeepStrictEqual(await runAcp(list), { code: 0, lines: ['5 cases, 0 mismatches'], errors: '' });
  });

  it('prints one line for each other verdict', async () => {
    const create = { schema: 'CheckoutSessionCreateRequest', direction: 'request' };
    const list = [
      labelled('a', { body: {} }),
      labelled('b', { valid: false }),
      labelled('untagged', { ...create, valid: false, body: { ...CREATE, ...NO_EXTENSIONS } }),
      labelled('too much', { ...create, valid: false, tags: ['empty_extensions'], body: {} }),
    ];
    assert.partialDeepStrictEqual(await runAcp(list), {
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
    const { code, lines, errors } = await runAcp([labelled('x', { schema: 'Cart' })]);
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
