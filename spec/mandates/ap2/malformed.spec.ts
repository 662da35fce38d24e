import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isObject, type Json, type JsonObject } from '../../../src/json/types.ts';
import type { Content } from '../../../tools/mandate/maker/contents.ts';
import { changed, type Hand } from '../../support/ap2/hands.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { verifierFor } from '../../support/ap2/verifier.ts';
import type { Wishes } from '../../support/ap2/wishes.ts';
import { verdictOn } from './full-mandates.ts';
import { resultOf, withCheckoutClaims } from './table.ts';

type Hands = NonNullable<Wishes['hands']>;

/** Puts a value at a path; undefined removes what is there. */
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
  date: [
    ...[null, true, 0, '', 'x', [], {}, '2026-13-01', '2026-02-29', '2026', '2026-11-20 12:00Z', '２０２６-11-20'],
    '2026-11-20T12:00:00',
  ],
} as const satisfies Readonly<Record<string, readonly Json[]>>;

/**
 * Members and their kinds. `?`: may be missing; a third word: the reason when it is missing, where
 * it is another one.
 */
const MEMBERS: Readonly<Partial<Record<keyof Hands, string>>> = {
  open: `constraints list, constraints.0 object, constraints.0.type text, constraints.0.items list,
    constraints.0.items.0 object, constraints.0.items.0.id identity, constraints.0.items.0.quantity whole,
    constraints.0.items.0.acceptable_items list, constraints.0.items.0.acceptable_items.0 object,
    constraints.0.items.0.acceptable_items.0.id identity, constraints.0.items.0.acceptable_items.0.title text,
    constraints.1.allowed list, constraints.1.allowed.0 object, constraints.1.allowed.0.id text,
    constraints.1.allowed.0.name text, constraints.1.allowed.0.website text?, cnf.jwk.x identity,
    cnf.jwk.y identity, iat whole?, exp whole`,
  closed: 'checkout_hash text, iat whole?, nbf whole?, exp whole?',
  openPayment: `constraints list, constraints.0 object, constraints.0.type text,
    constraints.0.conditional_transaction_id identity, constraints.1 object, constraints.1.type text,
    constraints.1.currency identity, constraints.1.max whole, constraints.1.min integer?,
    constraints.2.allowed list, constraints.2.allowed.0.id text,
    constraints.3.allowed list, constraints.3.allowed.0 object, constraints.3.allowed.0.id identity,
    constraints.3.allowed.0.type identity, constraints.3.allowed.0.description text?,
    constraints.4.allowed list, constraints.4.allowed.0 object, constraints.4.allowed.0.legal_name text,
    constraints.4.allowed.0.brand_name text, constraints.4.allowed.0.domain_name text,
    constraints.5.not_before date?, constraints.5.not_after date?, constraints.6.max number,
    constraints.6.currency identity, constraints.7.frequency text, constraints.7.max_occurrences whole?`,
  closedPayment: `transaction_id identity, payee object, payee.id text, payee.name text, payee.website text?,
    payment_amount object, payment_amount.amount whole, payment_amount.currency identity,
    payment_instrument object, payment_instrument.id identity, payment_instrument.type identity,
    payment_instrument.description text?, pisp object constraint_violated, pisp.legal_name text,
    pisp.brand_name text, pisp.domain_name text, execution_date date?, risk_data object?`,
};

const CHECKOUT = `iss identity, aud identity, iat whole, iat_ms whole?, exp whole, nbf whole?, jti text, id text?,
  status text?, links list?, currency identity?, merchant object?, merchant.id identity, merchant.name text,
  merchant.website text?, line_items list?, line_items.0 object, line_items.0.id text, line_items.0.quantity whole,
  line_items.0.totals list, line_items.0.item object, line_items.0.item.id identity,
  line_items.0.item.title text, line_items.0.item.price whole, totals list?, totals.0 object, totals.0.type text,
  totals.0.amount integer, agent_commerce object, agent_commerce.profile text,
  agent_commerce.resource_id identity, agent_commerce.input_hash text, agent_commerce.amount text,
  agent_commerce.currency identity, agent_commerce.payment_method identity,
  agent_commerce.network text payment_method_mismatch, agent_commerce.asset identity payment_method_mismatch,
  agent_commerce.destination identity payment_method_mismatch`;

type Verdict = readonly (string | undefined)[];

/** One test a member: `verdict` is that on a mandate with this value at the path. */
function refuses(
  members: string,
  reason: string,
  family: string,
  verdict: (path: string, value: Json | undefined) => Promise<Verdict>,
): void {
  for (const member of members.split(/,\s+/)) {
    const [path = '', kind = '', missing = reason] = member.split(' ');
    it(member, async () => {
      for (const value of WRONG[kind.replace('?', '') as keyof typeof WRONG])
        assert.deepEqual(await verdict(path, value), [reason, family], JSON.stringify(value));
      const expected = kind.endsWith('?') ? ['accepted'] : [missing, family];
      assert.deepEqual(await verdict(path, undefined), expected, 'missing');
    });
  }
}

describe('a signed mandate with an invalid member', () => {
  it('is accepted when every member is valid', async () =>
    assert.deepEqual(await resultOf(verdictOn({})), ['accepted']));

  for (const [part, members] of Object.entries(MEMBERS))
    describe(part, () =>
      refuses(members, 'claims_invalid', part.endsWith('Payment') ? 'payment' : 'checkout', (path, value) =>
        resultOf(verdictOn({ [part]: withValue(path, value) })),
      ),
    );
});

describe('a signed checkout with an invalid member', () => {
  const mint = createMint();
  const verify = verifierFor(mint);
  refuses(CHECKOUT, 'checkout_invalid', 'checkout', (path, value) => {
    const checkout = withCheckoutClaims((claims) => at(claims, path.split('.'), value) as JsonObject);
    return resultOf(verify(mint.direct({ checkout }).header));
  });
});
