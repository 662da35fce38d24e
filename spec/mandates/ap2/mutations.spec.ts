import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { isObject, type Json, type JsonObject } from '../../../src/json/json.ts';
import type { Reason } from '../../../src/mandates/ap2/reasons.ts';
import { referenceOf } from '../../../src/mandates/ap2/sd-jwt.ts';
import type { Content } from '../../../tools/mandate/maker/contents.ts';
import { base64url, chainOf, type Draft, hashOf, placeholder, sdJwt } from '../../../tools/mandate/maker/tokens.ts';
import { changed, type Hand } from '../../support/ap2/hands.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { verifierFor } from '../../support/ap2/verifier.ts';
import type { Wishes } from '../../support/ap2/wishes.ts';
import { mint, refusal, resultOf, verdictOn, withCheckoutClaims } from './cases.ts';

/** Any JSON, and values that are known to break verifiers. */
const json: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(null, true, '', 0, -1, 1e308, [], {}, '...', { '...': 'x' }, { _sd: ['x'] }, [[]]),
  fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>,
);
const names = fc.constantFrom(
  ...['iss', 'aud', 'iat', 'exp', 'nbf', 'nonce', 'vct', 'cnf', 'sd_hash', 'issuer_jwt_hash', 'delegate_payload'],
  ...['_sd', '_sd_alg', '...', 'alg', 'typ', 'kid', 'crit', 'x5c', 'constraints', 'checkout_jwt', 'jwk', 'toString'],
);

/**
 * What is done to a segment, or to what it holds; tokens are signed anew, so that nothing hides
 * behind the signature.
 */
type Change =
  | { readonly kind: 'header' | 'claims' | 'disclosure'; readonly name: string; readonly value: Json }
  | { readonly kind: 'raw'; readonly text: string }
  | { readonly kind: 'drop' | 'twice' | 'swap' };
const changes: fc.Arbitrary<Change> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('header' as const, 'claims' as const, 'disclosure' as const),
    name: names,
    value: json,
  }),
  fc.record({ kind: fc.constant('raw' as const), text: fc.string({ maxLength: 30 }) }),
  fc.record({ kind: fc.constantFrom('drop' as const, 'twice' as const, 'swap' as const) }),
);

const read = (part: string): JsonObject => JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));

function changedSegment(segment: string, change: Change, at: number, signer: { sign(text: string): string }): string {
  const [jwt = '', ...texts] = segment.slice(0, -1).split('~');
  const [head = '', payload = ''] = jwt.split('.');
  const signed = (header: JsonObject, claims: JsonObject): string => {
    const input = `${base64url(JSON.stringify(header))}.${base64url(JSON.stringify(claims))}`;
    return `${input}.${signer.sign(input)}`;
  };
  const which = texts.length === 0 ? 0 : at % texts.length;
  const one = texts[which] ?? '';
  switch (change.kind) {
    case 'header':
      return sdJwt(signed({ ...read(head), [change.name]: change.value }, read(payload)), texts);
    case 'claims':
      return sdJwt(signed(read(head), { ...read(payload), [change.name]: change.value }), texts);
    case 'disclosure':
      return sdJwt(jwt, texts.with(which, base64url(JSON.stringify(['salt', change.name, change.value]))));
    case 'raw':
      return segment.slice(0, at % segment.length) + change.text + segment.slice(at % segment.length);
    case 'drop':
      return sdJwt(jwt, texts.toSpliced(which, 1));
    case 'twice':
      return sdJwt(jwt, [...texts, one]);
    case 'swap':
      return sdJwt(jwt, texts.toReversed());
  }
}

describe('a chain that was tampered with', () => {
  const { provider, agent, subAgent } = mint.parties;
  const { segments } = mint.autonomous({ delegated: true });
  const signers = [provider, agent, subAgent];

  it('is refused or right, and never breaks the verifier', async () => {
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(fc.nat(2), fc.nat(5_000), changes, async (which, at, change) => {
        const segment = segments[which] ?? '';
        const signer = signers[which] ?? provider;
        const presentation = chainOf(segments.with(which, changedSegment(segment, change, at, signer)));
        // Throws for anything but a refusal.
        if ((await refusal(presentation)) !== 'none') refused += 1;
        referenceOf(presentation);
      }),
      { numRuns: 1_000, seed: 20_261_120 },
    );
    // A claim or a header that is not read changes nothing; only on the last segment, for the
    // others are bound to what follows.
    assert.ok(refused > 900, `${refused}`);
  });

  it('in a way that its binding covers is never right', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(1), fc.nat(5_000), changes, async (which, at, change) => {
        const segment = segments[which] ?? '';
        const tampered = changedSegment(segment, change, at, signers[which] ?? provider);
        if (tampered === segment) return;
        assert.notEqual(await refusal(chainOf(segments.with(which, tampered))), 'none');
      }),
      { numRuns: 500, seed: 7 },
    );
  });
});

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

/** A hand that writes the JSON of the mandate as no library would. */
function written(from: string, to: string): Hand {
  return {
    draft(draft: Draft) {
      const json = Buffer.from(draft.disclosures.at(-1)?.text ?? '', 'base64url').toString('utf8');
      assert.ok(json.includes(from));
      const text = base64url(json.replace(from, to));
      const whole = { text, digest: hashOf(text) };
      const claims = changed(draft.claims, { delegate_payload: [placeholder(whole)] });
      return { ...draft, claims, disclosures: [...draft.disclosures.slice(0, -1), whole] };
    },
  };
}

describe('a signed mandate with unusual JSON', () => {
  const ROWS: readonly (readonly [what: string, from: string, to: string, result: Reason | 'accepted'])[] = [
    ['with a number in powers', '"max":10000', '"max":1e4', 'accepted'],
    ['with a number with a point', '"max":10000', '"max":10000.0', 'accepted'],
    ['with a number beyond all numbers', '"max":10000', '"max":1e400', 'claims_invalid'],
    ['with a number that is not exact', '"max":10000', '"max":9007199254740993', 'claims_invalid'],
    ['with a number that hides that it is not', '"max":10000', '"max":9007199254740993.0', 'claims_invalid'],
    ['with a name in escapes', '"max":10000', '"m\\u0061x":10000', 'accepted'],
    ['with a name twice', '"max":10000', '"max":10000,"max":99999', 'disclosure_invalid'],
    ['with a name twice, once in escapes', '"max":10000', '"max":10000,"m\\u0061x":99999', 'disclosure_invalid'],
    ['with half a character', '"max":10000', '"max":10000,"x":"\\ud800"', 'disclosure_invalid'],
    ['with a name that changes prototypes', '"max":10000', '"max":10000,"__proto__":{}', 'disclosure_invalid'],
    ['with another letter that looks the same', '"USDC"', '"USD\u0421"', 'constraint_violated'],
    ['with a type that every object has', '"payment.allowed_payees"', '"constructor"', 'constraint_unresolved'],
    ['with a type and a space', '"payment.allowed_payees"', '"payment.allowed_payees "', 'constraint_unresolved'],
    ['nested too deep', '"max":10000', `"max":10000,"x":${'['.repeat(13)}${']'.repeat(13)}`, 'disclosure_invalid'],
  ];
  for (const [what, from, to, result] of ROWS)
    it(`${what}: ${result}`, async () => {
      const [given] = await resultOf(verdictOn({ openPayment: written(from, to) }));
      assert.equal(given, result);
    });
});
