import type { DocumentName } from '../../../../src/adapters/acp/validation/types.ts';
import type { Json, JsonObject } from '../../../../src/json/types.ts';
import { createWith, ITEM, SESSION } from './bodies.ts';
import { VECTORS } from './vectors/documents.ts';

const COMPLETE = VECTORS.CheckoutSessionCompleteRequest.least as JsonObject;
const long = 'x'.repeat(64);
const metadata = (name: string) => ({ intent_trace: { reason_code: 'other', metadata: { [name]: null } } });
/** A fault of each kind and what is said of it. */
export const FAULTS: readonly (readonly [
  what: string,
  name: DocumentName,
  document: Json,
  param: string,
  message: string | RegExp,
])[] = [
  [
    'a member that is missing',
    'CheckoutSessionCreateRequest',
    createWith({ line_items: [{}] }),
    '$.line_items[0].id',
    'is required',
  ],
  [
    'a quantity',
    'CheckoutSessionCreateRequest',
    createWith({ line_items: [ITEM, { ...ITEM, quantity: 2 }] }),
    '$.line_items[1].quantity',
    'is not a member of this object',
  ],
  ['a type', 'CheckoutSessionCreateRequest', createWith({ currency: null }), '$.currency', 'must be string'],
  [
    'a type of several',
    'CancelSessionRequest',
    metadata('a'),
    '$.intent_trace.metadata.a',
    'must be string or number or boolean',
  ],
  [
    'a value of a list',
    'CheckoutSession',
    { ...SESSION, status: 'paid' },
    '$.status',
    'must be one of "incomplete", "not_ready_for_payment", "ready_for_payment", "authentication_required", "in_progress", "complete_in_progress", "pending_approval", "requires_escalation", "completed", "canceled", "expired"',
  ],
  [
    'the only value',
    'CheckoutSession',
    { ...SESSION, order: { id: 'a', checkout_session_id: 'b', permalink_url: 'https://shop.example', type: 'x' } },
    '$.order.type',
    'must be "order"',
  ],
  [
    'a format',
    'CheckoutSessionCreateRequest',
    createWith({ buyer: { email: 'x' } }),
    '$.buyer.email',
    'must be in the format email',
  ],
  [
    'a length',
    'CheckoutSessionCreateRequest',
    createWith({ order_notes: 'x'.repeat(5001) }),
    '$.order_notes',
    'must have at most 5000 characters',
  ],
  [
    'an empty list',
    'CheckoutSessionCreateRequest',
    createWith({ line_items: [] }),
    '$.line_items',
    'must have at least 1 items',
  ],
  ['a document of another type', 'CheckoutSessionUpdateRequest', [], '$', 'must be object'],
  [
    'an unknown kind of message',
    'CheckoutSession',
    { ...SESSION, messages: [{ type: 'hint' }] },
    '$.messages[0].type',
    'must be the name of one of the forms',
  ],
  ['a message without kind', 'CheckoutSession', { ...SESSION, messages: [{}] }, '$.messages[0].type', 'is required'],
  [
    'a message of a known kind, at its own member',
    'CheckoutSession',
    { ...SESSION, messages: [{ type: 'error', code: 'low', content_type: 'plain', content: '' }] },
    '$.messages[0].code',
    /^must be one of "missing", "invalid", .*"intervention_required"$/,
  ],
  [
    'a payment of no form',
    'CheckoutSessionCompleteRequest',
    { payment_data: {} },
    '$.payment_data',
    'must have handler_id or purchase_order_number',
  ],
  [
    'a payment without instrument',
    'CheckoutSessionCompleteRequest',
    { payment_data: { handler_id: 'x' } },
    '$.payment_data',
    'must have instrument or purchase_order_number',
  ],
  [
    'an outcome without its details',
    'CheckoutSessionCompleteRequest',
    { ...COMPLETE, authentication_result: { outcome: 'authenticated' } },
    '$.authentication_result.outcome_details',
    'is required',
  ],
  [
    'a declaration without name',
    'CheckoutSessionCreateRequest',
    createWith({ capabilities: { extensions: [{}] } }),
    '$.capabilities.extensions[0].name',
    'is required',
  ],
  [
    'a name among declarations',
    'CheckoutSessionCreateRequest',
    createWith({ capabilities: { extensions: ['a', 7] } }),
    '$.capabilities.extensions[1]',
    'must be string',
  ],
  [
    'equal items',
    'CheckoutSessionCreateRequest',
    createWith({
      capabilities: {
        extensions: [
          { name: 'a', spec: 'x:y' },
          { spec: 'x:y', name: 'a' },
        ],
      },
    }),
    '$.capabilities.extensions',
    'must not have equal items',
  ],
  [
    'a member with the longest name',
    'CancelSessionRequest',
    metadata(long),
    `$.intent_trace.metadata.${long}`,
    'must be string or number or boolean',
  ],
  [
    'a member with a longer name, at its parent',
    'CancelSessionRequest',
    metadata(`${long}x`),
    '$.intent_trace.metadata',
    'must be string or number or boolean',
  ],
  [
    'a name with other characters, at its parent',
    'CancelSessionRequest',
    metadata('a/b~c'),
    '$.intent_trace.metadata',
    'must be string or number or boolean',
  ],
  [
    'a name of digits in an object, at its parent',
    'CancelSessionRequest',
    metadata('0'),
    '$.intent_trace.metadata',
    'must be string or number or boolean',
  ],
  [
    'an unknown member with such a name, at its parent',
    'CheckoutSessionUpdateRequest',
    { 'a b': 1 },
    '$',
    'is not a member of this object',
  ],
  [
    'the member __proto__',
    'CheckoutSessionUpdateRequest',
    JSON.parse('{"__proto__":1}') as Json,
    '$.__proto__',
    'is not a member of this object',
  ],
];
