import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isObject, type Json, type JsonObject } from '../../../src/json/types.ts';
import type { Content } from '../../../tools/mandate/maker/contents.ts';
import { changed, type Hand } from '../../support/ap2/hands.ts';
import type { Wishes } from '../../support/ap2/wishes.ts';
import { resultOf } from './full-mandates.ts';

type Place = keyof NonNullable<Wishes['hands']>;

/** The value at a path put in place of another; undefined takes it away. */
function at(document: Json, [name, ...rest]: readonly string[], value: Json | undefined): Json {
  if (name === undefined) throw new Error('a path has a name');
  if (Array.isArray(document)) {
    const list: readonly Json[] = document;
    return list.map((entry, index) => (String(index) !== name ? entry : within(entry, rest, value)));
  }
  assert.ok(isObject(document));
  const old = document[name];
  const next = rest.length > 0 && old !== undefined ? at(old, rest, value) : value;
  return changed(document, { [name]: next });
}

function within(entry: Json, rest: readonly string[], value: Json | undefined): Json {
  return rest.length === 0 ? (value ?? null) : at(entry, rest, value);
}

function withValue(path: string, value: Json | undefined): Hand {
  const content = ({ mandate, disclosures }: Content): Content => ({
    mandate: at(mandate, path.split('.'), value) as JsonObject,
    disclosures,
  });
  return { content };
}

/** What no member of that kind can be. `identity`: a text that is not empty. */
const WRONG = {
  text: [null, true, 0, [], {}, ['x']],
  identity: [null, true, 0, [], {}, ['x'], ''],
  list: [null, true, 0, '', 'x', {}, { 0: 'x', length: 1 }],
  object: [null, true, 0, '', 'x', [], [{}]],
  whole: [null, true, -1, 0.5, '1', '', [], {}, [1]],
  integer: [null, true, 0.5, '1', '', [], {}, [1], -(2 ** 53)],
  number: [null, true, -1, '1', '', [], {}, [1], 1e-7, 1e21],
  date: [null, true, 0, '', 'x', [], {}, '2026-13-01', '2026-02-29', '2026', '2026-11-20 12:00Z', '２０２６-11-20'],
} as const satisfies Readonly<Record<string, readonly Json[]>>;

/** Members by the mandate they are in; `?`: may be missing. */
const MEMBERS: Readonly<Partial<Record<Place, readonly string[]>>> = {
  open: [
    'constraints list',
    'constraints.0 object',
    'constraints.0.type text',
    'constraints.0.items list',
    'constraints.0.items.0 object',
    'constraints.0.items.0.id identity',
    'constraints.0.items.0.quantity whole',
    'constraints.0.items.0.acceptable_items list',
    'constraints.0.items.0.acceptable_items.0 object',
    'constraints.0.items.0.acceptable_items.0.id identity',
    'constraints.0.items.0.acceptable_items.0.title text',
    'constraints.1.allowed list',
    'constraints.1.allowed.0 object',
    'constraints.1.allowed.0.id text',
    'constraints.1.allowed.0.name text',
    'constraints.1.allowed.0.website text?',
    'cnf.jwk.x identity',
    'cnf.jwk.y identity',
    'iat whole?',
    'exp whole',
  ],
  closed: ['checkout_hash text', 'iat whole?', 'nbf whole?', 'exp whole?'],
  openPayment: [
    'constraints.0.conditional_transaction_id identity',
    'constraints.1.currency identity',
    'constraints.1.max whole',
    'constraints.1.min integer?',
    'constraints.2.allowed list',
    'constraints.2.allowed.0.id text',
    'constraints.3.allowed list',
    'constraints.3.allowed.0 object',
    'constraints.3.allowed.0.id identity',
    'constraints.3.allowed.0.type identity',
    'constraints.3.allowed.0.description text?',
    'constraints.4.allowed list',
    'constraints.4.allowed.0 object',
    'constraints.4.allowed.0.legal_name text',
    'constraints.4.allowed.0.brand_name text',
    'constraints.4.allowed.0.domain_name text',
    'constraints.5.not_before date?',
    'constraints.5.not_after date?',
    'constraints.6.max number',
    'constraints.6.currency identity',
    'constraints.7.frequency text',
    'constraints.7.max_occurrences whole?',
  ],
  closedPayment: [
    'transaction_id identity',
    'payee object',
    'payee.id text',
    'payee.name text',
    'payee.website text?',
    'payment_amount object',
    'payment_amount.amount whole',
    'payment_amount.currency identity',
    'payment_instrument object',
    'payment_instrument.id identity',
    'payment_instrument.type identity',
    'payment_instrument.description text?',
    'pisp object',
    'pisp.domain_name text',
    'execution_date date?',
    'risk_data object?',
  ],
};

describe('a member that is not what it has to be, well signed', () => {
  it('is the one thing that is wrong with these mandates', async () => assert.equal(await resultOf({}), 'accepted'));

  for (const [place, members] of Object.entries(MEMBERS))
    for (const member of members) {
      const [path = '', kind = ''] = member.split(' ');
      it(`${place}: ${member}`, async () => {
        for (const value of WRONG[kind.replace('?', '') as keyof typeof WRONG])
          assert.equal(await resultOf({ [place]: withValue(path, value) }), 'claims_invalid', JSON.stringify(value));
        const missing = await resultOf({ [place]: withValue(path, undefined) });
        if (kind.endsWith('?')) assert.equal(missing, 'accepted');
        else assert.ok(missing !== 'accepted');
      });
    }
});
