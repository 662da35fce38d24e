import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DocumentName } from '../../../../src/adapters/acp/validation/types.ts';
import { validatorOf } from '../../../../src/adapters/acp/validation/validator.ts';
import type { Json, JsonObject } from '../../../../src/json/types.ts';
import { createWith, ITEM, SESSION } from './bodies.ts';
import { VECTORS } from './vectors/documents.ts';

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
  for (const [name, rows] of Object.entries(FAULTS))
    for (const [what, document, param, message] of rows)
      it(`points at ${what}`, () => {
        const fault = faultOf(name as DocumentName, document);
        assert.equal(fault?.param, param);
        if (typeof message === 'string') assert.equal(fault?.message, message);
        else assert.match(fault?.message ?? '', message);
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
