import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DocumentName } from '../../../../src/adapters/acp/validation/types.ts';
import { validatorOf } from '../../../../src/adapters/acp/validation/validator.ts';
import type { Json } from '../../../../src/json/types.ts';
import { SESSION } from './bodies.ts';
import { FAULTS } from './fault-rows.ts';

function faultOf(name: DocumentName, document: Json) {
  return validatorOf('strict', name)(document);
}

describe('a fault', () => {
  for (const [what, name, document, param, message] of FAULTS)
    it(`points at ${what}`, () => {
      const fault = faultOf(name, document);
      assert.equal(fault?.param, param);
      if (typeof message === 'string') assert.equal(fault?.message, message);
      else assert.match(fault?.message ?? '', message);
    });

  it('names the keyword', () => {
    assert.equal(faultOf('CheckoutSessionCreateRequest', {})?.keyword, 'required');
    assert.equal(faultOf('CheckoutSessionCompleteRequest', { payment_data: {} })?.keyword, 'anyOf');
  });

  it('tells nothing of what a document holds', () => {
    const secret = '4242424242424242';
    for (const [name, document] of [
      [
        'CheckoutSessionCompleteRequest',
        { payment_data: { handler_id: 'x', instrument: { type: secret, credential: secret } } },
      ],
      ['CheckoutSessionCompleteRequest', { payment_data: { purchase_order_number: 'x', payment_terms: secret } }],
      ['CheckoutSessionCompleteRequest', { payment_data: { purchase_order_number: 'x', due_date: secret } }],
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
