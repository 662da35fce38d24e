import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { relaxed } from '../../../../src/adapters/acp/validation/engine.ts';
import {
  BUILDS,
  type Build,
  type DocumentName,
  validatorOf,
} from '../../../../src/adapters/acp/validation/validator.ts';
import type { Json, JsonObject } from '../../../../src/json/json.ts';
import { createWith, ITEM, SESSION } from './vectors.ts';

const WIRE: readonly Build[] = ['wire', 'wire-quantity'];
const QUANTITY: readonly Build[] = ['wire-quantity'];
const intent = (trace: JsonObject) => ({ intent_trace: trace });
const interventions = (list: JsonObject) => ({ capabilities: { interventions: list } });
const items = (quantity: number) => ({ line_items: [{ ...ITEM, quantity }] });

describe('what callers may do beyond the official schema', () => {
  const rows: readonly (readonly [what: string, name: DocumentName, document: Json, takenBy: readonly Build[]])[] = [
    ['an unknown reason', 'CancelSessionRequest', intent({ reason_code: 'moved_house' }), WIRE],
    ['a reason that is no text', 'CancelSessionRequest', intent({ reason_code: 7 }), []],
    ['nested metadata of an intent', 'CancelSessionRequest', intent({ reason_code: 'other', metadata: { a: {} } }), []],
    ...(
      [
        ['an unknown capability', interventions({ supported: ['face'] }), WIRE],
        ['a capability that is no text', interventions({ supported: [7] }), []],
        ['an unknown requirement', interventions({ required: ['face'] }), []],
        ['no extensions', { capabilities: { extensions: [] } }, WIRE],
        ['a quantity of an item', items(1), QUANTITY],
      ] as const
    ).map(([what, changes, takenBy]) => [what, 'CheckoutSessionCreateRequest', createWith(changes), takenBy] as const),
    ['a quantity on update', 'CheckoutSessionUpdateRequest', items(1), QUANTITY],
    ['a quantity of nothing', 'CheckoutSessionUpdateRequest', items(0), []],
    ['half a quantity', 'CheckoutSessionUpdateRequest', items(1.5), []],
    ['no extensions of an answer', 'CheckoutSession', { ...SESSION, capabilities: { extensions: [] } }, []],
    [
      'an unknown capability in an answer',
      'CheckoutSession',
      { ...SESSION, ...interventions({ supported: ['face'] }) },
      [],
    ],
  ];
  it('is taken by the builds that are relaxed so', () => {
    for (const [what, name, document, takenBy] of rows)
      for (const build of BUILDS)
        assert.equal(validatorOf(build, name)(document) === undefined, takenBy.includes(build), `${what}, ${build}`);
  });

  it('applies to nodes of the schemas: a missing node is an error', () => {
    assert.throws(() => relaxed('request.schema.json', { $defs: {} }, 'wire'), /IntentTrace\/properties\/reason_code/);
    const reason = { $defs: { IntentTrace: { properties: { reason_code: { type: 'string' } } } } };
    assert.throws(() => relaxed('request.schema.json', reason, 'wire'), /has no enum at/);
  });
});
