import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { relaxed } from '../../../../src/adapters/acp/validation/engine.ts';
import { BUILDS, type Build, type DocumentName } from '../../../../src/adapters/acp/validation/types.ts';
import { validatorOf } from '../../../../src/adapters/acp/validation/validator.ts';
import type { Json } from '../../../../src/json/types.ts';
import { createWith, ITEM, SESSION } from './bodies.ts';

describe('what callers may do beyond the official schema', () => {
  const rows: readonly (readonly [what: string, name: DocumentName, document: Json, takenBy: readonly Build[]])[] = [
    [
      'an unknown reason',
      'CancelSessionRequest',
      { intent_trace: { reason_code: 'moved_house' } },
      ['wire', 'wire-quantity'],
    ],
    ['a reason that is no text', 'CancelSessionRequest', { intent_trace: { reason_code: 7 } }, []],
    [
      'nested metadata of an intent',
      'CancelSessionRequest',
      { intent_trace: { reason_code: 'other', metadata: { a: {} } } },
      [],
    ],
    [
      'an unknown capability',
      'CheckoutSessionCreateRequest',
      createWith({ capabilities: { interventions: { supported: ['face'] } } }),
      ['wire', 'wire-quantity'],
    ],
    [
      'a capability that is no text',
      'CheckoutSessionCreateRequest',
      createWith({ capabilities: { interventions: { supported: [7] } } }),
      [],
    ],
    [
      'an unknown requirement',
      'CheckoutSessionCreateRequest',
      createWith({ capabilities: { interventions: { required: ['face'] } } }),
      [],
    ],
    [
      'no extensions',
      'CheckoutSessionCreateRequest',
      createWith({ capabilities: { extensions: [] } }),
      ['wire', 'wire-quantity'],
    ],
    [
      'a quantity of an item',
      'CheckoutSessionCreateRequest',
      createWith({ line_items: [{ ...ITEM, quantity: 1 }] }),
      ['wire-quantity'],
    ],
    [
      'a quantity on update',
      'CheckoutSessionUpdateRequest',
      { line_items: [{ ...ITEM, quantity: 1 }] },
      ['wire-quantity'],
    ],
    ['a quantity of nothing', 'CheckoutSessionUpdateRequest', { line_items: [{ ...ITEM, quantity: 0 }] }, []],
    ['half a quantity', 'CheckoutSessionUpdateRequest', { line_items: [{ ...ITEM, quantity: 1.5 }] }, []],
    ['no extensions of an answer', 'CheckoutSession', { ...SESSION, capabilities: { extensions: [] } }, []],
    [
      'an unknown capability in an answer',
      'CheckoutSession',
      { ...SESSION, capabilities: { interventions: { supported: ['face'] } } },
      [],
    ],
  ];
  for (const [what, name, document, takenBy] of rows)
    it(`${takenBy.length === 0 ? 'is never' : `in ${takenBy.join(' and ')} is`} ${what}`, () => {
      for (const build of BUILDS)
        assert.equal(validatorOf(build, name)(document) === undefined, takenBy.includes(build), build);
    });

  it('must be a place of the schemas: one that is gone is told', () => {
    assert.throws(() => relaxed('request.schema.json', { $defs: {} }, 'wire'), /IntentTrace\/properties\/reason_code/);
    const reason = { $defs: { IntentTrace: { properties: { reason_code: { type: 'string' } } } } };
    assert.throws(() => relaxed('request.schema.json', reason, 'wire'), /has no enum at/);
  });
});
