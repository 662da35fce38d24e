import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RELAXED, SCHEMA_FILES } from '../../../../src/adapters/acp/validation/engine.ts';
import {
  BUILDS,
  DOCUMENT_NAMES,
  type DocumentName,
  REQUEST_NAMES,
  validatorOf,
} from '../../../../src/adapters/acp/validation/validator.ts';
import { isObject, type Json, type JsonObject } from '../../../../src/json/json.ts';
import { FORMATS } from '../../../../src/resources/patterns/formats.ts';
import { patternFault } from '../../../../src/resources/patterns/linear.ts';
import { readCorpus } from '../../../../tools/vectors/acp.ts';
import { CORPUS_FILE, OFFICIAL_SCHEMA_FILE, readOfficial, unless } from './published.ts';
import { createWith, ITEM, SESSION, VECTORS } from './vectors.ts';

describe('the own vectors', () => {
  for (const name of DOCUMENT_NAMES)
    it(`of ${name} are taken by every build where they are right, and refused where they break a rule`, () => {
      const { least, full, valid, invalid } = VECTORS[name];
      for (const build of BUILDS)
        for (const document of [least, full, ...valid])
          assert.equal(validatorOf(build, name)(document), undefined, JSON.stringify(document));
      for (const document of invalid)
        assert.notEqual(validatorOf('strict', name)(document), undefined, JSON.stringify(document));
    });

  it('get the same verdict from the official schema', {
    skip: unless(OFFICIAL_SCHEMA_FILE, 'the own vectors were NOT held against the official schema'),
  }, () => {
    const official = readOfficial();
    for (const name of DOCUMENT_NAMES) {
      const { least, full, valid, invalid } = VECTORS[name];
      for (const document of [least, full, ...valid])
        assert.ok(official.accepts(name, document), `${name} ${JSON.stringify(document)}`);
      for (const document of invalid)
        assert.equal(official.accepts(name, document), false, `${name} ${JSON.stringify(document)}`);
    }
  });
});

const REQUESTS: ReadonlySet<string> = new Set(REQUEST_NAMES);

describe('the labelled documents of the official schema', () => {
  const skip = unless(CORPUS_FILE, 'the labelled documents were NOT checked');
  for (const build of BUILDS)
    it(`get the labelled verdict in the build ${build}, but for what it accepts from callers`, { skip }, () => {
      const taken: ReadonlySet<string> = new Set(RELAXED[build]);
      for (const { id, schema, valid, tags, body } of readCorpus(CORPUS_FILE)) {
        const expected = valid || (REQUESTS.has(schema) && tags.some((tag) => taken.has(tag)));
        assert.equal(validatorOf(build, schema)(body) === undefined, expected, `${id} ${schema}`);
      }
    });
});

const faultOf = (name: DocumentName, document: Json) => validatorOf('strict', name)(document);

const COMPLETE = VECTORS.CheckoutSessionCompleteRequest.least as JsonObject;
const LONG_NAME = 'x'.repeat(64);
const metadata = (name: string) => ({ intent_trace: { reason_code: 'other', metadata: { [name]: null } } });
const extensions = (list: Json) => createWith({ capabilities: { extensions: list } });
const ORDER = { id: 'a', checkout_session_id: 'b', permalink_url: 'https://shop.example' };
const STATUSES = [
  ...['incomplete', 'not_ready_for_payment', 'ready_for_payment', 'authentication_required', 'in_progress'],
  ...['complete_in_progress', 'pending_approval', 'requires_escalation', 'completed', 'canceled', 'expired'],
];
const oneOf = (values: readonly string[]): string => `must be one of ${values.map((one) => `"${one}"`).join(', ')}`;
const NO_MEMBER = 'is not a member of this object';
const SIMPLE = 'must be string or number or boolean';

type Row = readonly [what: string, document: Json, param: string, message: string | RegExp];

/** A fault of each kind, and the fault that is reported. */
const FAULTS: Partial<Readonly<Record<DocumentName, readonly Row[]>>> = {
  CheckoutSessionCreateRequest: [
    ['a member that is missing', createWith({ line_items: [{}] }), '$.line_items[0].id', 'is required'],
    ['a quantity', createWith({ line_items: [ITEM, { ...ITEM, quantity: 2 }] }), '$.line_items[1].quantity', NO_MEMBER],
    ['a type', createWith({ currency: null }), '$.currency', 'must be string'],
    ['a format', createWith({ buyer: { email: 'x' } }), '$.buyer.email', 'must be in the format email'],
    ['a length', createWith({ order_notes: 'x'.repeat(5001) }), '$.order_notes', 'must have at most 5000 characters'],
    ['an empty list', createWith({ line_items: [] }), '$.line_items', 'must have at least 1 items'],
    ['a declaration without name', extensions([{}]), '$.capabilities.extensions[0].name', 'is required'],
    ['a name among declarations', extensions(['a', 7]), '$.capabilities.extensions[1]', 'must be string'],
    [
      'equal items',
      extensions([
        { name: 'a', spec: 'x:y' },
        { spec: 'x:y', name: 'a' },
      ]),
      '$.capabilities.extensions',
      'must not have equal items',
    ],
  ],
  CheckoutSessionUpdateRequest: [
    ['a document of another type', [], '$', 'must be object'],
    ['an unknown member with such a name, at its parent', { 'a b': 1 }, '$', NO_MEMBER],
    ['the member __proto__', JSON.parse('{"__proto__":1}') as Json, '$.__proto__', NO_MEMBER],
  ],
  CheckoutSessionCompleteRequest: [
    ['a payment of no form', { payment_data: {} }, '$.payment_data', 'must have handler_id or purchase_order_number'],
    [
      'a payment without instrument',
      { payment_data: { handler_id: 'x' } },
      '$.payment_data',
      'must have instrument or purchase_order_number',
    ],
    [
      'an outcome without its details',
      { ...COMPLETE, authentication_result: { outcome: 'authenticated' } },
      '$.authentication_result.outcome_details',
      'is required',
    ],
  ],
  CancelSessionRequest: [
    ['a type of several', metadata('a'), '$.intent_trace.metadata.a', SIMPLE],
    ['a member with the longest name', metadata(LONG_NAME), `$.intent_trace.metadata.${LONG_NAME}`, SIMPLE],
    ['a member with a longer name, at its parent', metadata(`${LONG_NAME}x`), '$.intent_trace.metadata', SIMPLE],
    ['a name with other characters, at its parent', metadata('a/b~c'), '$.intent_trace.metadata', SIMPLE],
    ['a name of digits in an object, at its parent', metadata('0'), '$.intent_trace.metadata', SIMPLE],
  ],
  CheckoutSession: [
    ['a value of a list', { ...SESSION, status: 'paid' }, '$.status', oneOf(STATUSES)],
    ['the only value', { ...SESSION, order: { ...ORDER, type: 'x' } }, '$.order.type', 'must be "order"'],
    [
      'an unknown kind of message',
      { ...SESSION, messages: [{ type: 'hint' }] },
      '$.messages[0].type',
      'must be the name of one of the forms',
    ],
    ['a message without kind', { ...SESSION, messages: [{}] }, '$.messages[0].type', 'is required'],
    [
      'a message of a known kind, at its own member',
      { ...SESSION, messages: [{ type: 'error', code: 'low', content_type: 'plain', content: '' }] },
      '$.messages[0].code',
      /^must be one of "missing", "invalid", .*"intervention_required"$/,
    ],
  ],
};

describe('a fault', () => {
  it('points at its place, and says what would be right', () => {
    for (const [name, rows] of Object.entries(FAULTS))
      for (const [what, document, param, message] of rows) {
        const fault = faultOf(name as DocumentName, document);
        assert.equal(fault?.param, param, what);
        if (typeof message === 'string') assert.equal(fault?.message, message, what);
        else assert.match(fault?.message ?? '', message, what);
      }
  });

  it('names the keyword', () => {
    assert.equal(faultOf('CheckoutSessionCreateRequest', {})?.keyword, 'required');
    assert.equal(faultOf('CheckoutSessionCompleteRequest', { payment_data: {} })?.keyword, 'anyOf');
  });

  it('reveals nothing of what a document holds', () => {
    const secret = '4242424242424242';
    const purchaseOrder = { purchase_order_number: 'x' };
    for (const [name, document] of [
      [
        'CheckoutSessionCompleteRequest',
        { payment_data: { handler_id: 'x', instrument: { type: secret, credential: secret } } },
      ],
      ['CheckoutSessionCompleteRequest', { payment_data: { ...purchaseOrder, payment_terms: secret } }],
      ['CheckoutSessionCompleteRequest', { payment_data: { ...purchaseOrder, due_date: secret } }],
      ['CheckoutSession', { ...SESSION, messages: [{ type: secret }] }],
      ['CancelSessionRequest', { intent_trace: { reason_code: secret } }],
      ['CheckoutSessionUpdateRequest', { [secret]: 1 }],
    ] as const) {
      const fault = faultOf(name, document);
      assert.ok(fault !== undefined);
      assert.doesNotMatch(JSON.stringify(fault), new RegExp(secret));
    }
  });
});

/** Longest turn that one document may take, milliseconds of CPU. */
const LIMIT_MS = 50;

function* members(node: Json, name: string): Generator<string> {
  if (Array.isArray(node)) for (const item of node as readonly Json[]) yield* members(item, name);
  if (!isObject(node)) return;
  for (const [key, value] of Object.entries(node))
    if (key === name && typeof value === 'string') yield value;
    else yield* members(value, name);
}

describe('texts in documents of checkouts', () => {
  const published = Object.values(SCHEMA_FILES);

  it('are matched by patterns and formats that take linear time, all of them', () => {
    const patterns = new Set(published.flatMap((schema) => [...members(schema, 'pattern')]));
    assert.ok(patterns.size > 0);
    for (const pattern of patterns) assert.equal(patternFault(pattern), undefined, pattern);
    for (const format of new Set(published.flatMap((schema) => [...members(schema, 'format')])))
      assert.ok(Object.hasOwn(FORMATS, format), format);
  });

  for (const build of BUILDS)
    it(`share the budget of their document: ${build}`, () => {
      const { full } = VECTORS['CheckoutSession'];
      assert.ok(isObject(full));
      const validate = validatorOf(build, 'CheckoutSession');
      assert.equal(validate(full), undefined);
      const link = { type: 'terms_of_use', url: `https://shop.example/${'a'.repeat(2_000)}` };
      const crowded = { ...full, links: Array.from({ length: 500 }, () => link) };
      const start = process.threadCpuUsage();
      const fault = validate(crowded);
      const { user, system } = process.threadCpuUsage(start);
      assert.deepEqual([fault?.param, fault?.keyword], ['$', 'maxLength']);
      assert.ok((user + system) / 1_000 < LIMIT_MS, `${(user + system) / 1_000} ms of CPU`);
      assert.equal(validate(full), undefined, 'the next document has a budget of its own');
    });
});

describe('a hostile document of the largest size', () => {
  const SIZE = 262_144;
  const many = (length: number) => Array.from({ length: Math.floor(SIZE / length) }, (_, index) => index);
  const extensions = (list: Json): JsonObject => ({ capabilities: { extensions: list } });
  const email = (text: string): JsonObject => ({ buyer: { email: text } });
  const attribution = (changes: JsonObject): JsonObject => {
    return { affiliate_attribution: { provider: 'x', token: 'x', ...changes } };
  };
  const url = (text: string): JsonObject => attribution({ source: { type: 'url', url: text } });
  const rows: readonly (readonly [what: string, changes: JsonObject])[] = [
    ['equal-looking declarations', extensions(many(20).map((index) => ({ name: `a${index}` })))],
    ['declarations that are none', extensions(many(4).map((index) => [index]))],
    ['an address with one long label', email(`a@${'a'.repeat(SIZE)}`)],
    ['an address with many labels', email(`a@${'a.'.repeat(SIZE / 2)}`)],
    ['an address with hyphens', email(`a@${'a-'.repeat(SIZE / 2)}`)],
    ['an address without host', email(`${'a.'.repeat(SIZE / 2)}@`)],
    ['a long time', attribution({ issued_at: 't'.repeat(SIZE) })],
    ['a long URL', url(`x://${'%20:'.repeat(SIZE / 4)}`)],
    ['a URL of addresses', url(`x://[${'1:'.repeat(SIZE / 2)}`)],
    ['a long name of an extension', extensions([{ name: `${'a.'.repeat(SIZE / 2)}A` }])],
  ];
  it('is checked in a moment', () => {
    const validate = validatorOf('wire', 'CheckoutSessionCreateRequest');
    for (const [what, changes] of rows) {
      const document = createWith(changes);
      const started = performance.now();
      validate(document);
      assert.ok(performance.now() - started < 500, `${what}: ${performance.now() - started} ms`);
    }
  });
});
