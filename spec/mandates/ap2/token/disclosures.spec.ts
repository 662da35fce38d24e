import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../../src/json/types.ts';
import type { Reason } from '../../../../src/mandates/ap2/reasons.ts';
import { resolveDisclosures } from '../../../../src/mandates/ap2/sd-jwt.ts';
import {
  type Disclosure,
  discloseElement,
  discloseMember,
  disclosureOf,
  placeholder,
} from '../../../../tools/mandate/maker/tokens.ts';
import { refusalOf } from '../refusal.ts';

const texts = (disclosures: readonly Disclosure[]): readonly string[] => disclosures.map(({ text }) => text);
const resolve = (claims: JsonObject, ...disclosures: readonly Disclosure[]): JsonObject =>
  resolveDisclosures(claims, texts(disclosures));
const refusal = (claims: JsonObject, ...disclosures: readonly Disclosure[]): Reason | 'none' =>
  refusalOf(() => resolve(claims, ...disclosures));
/** A token with this as its plain mandate. */
const holding = (mandate: JsonObject): JsonObject => ({ delegate_payload: [mandate] });
const element = discloseElement('e');
const member = discloseMember('m', 1);

describe('disclosures are refused', () => {
  const withElement = holding({ list: [placeholder(element)] });
  const withMember = holding({ _sd: [member.digest] });
  const odd = (value: Json): readonly [JsonObject, Disclosure] => {
    const disclosure = disclosureOf(value);
    return [holding({ list: [placeholder(disclosure)] }), disclosure];
  };
  const named = (name: string, more: JsonObject = {}): readonly [JsonObject, Disclosure] => {
    const disclosure = discloseMember(name, 1);
    return [holding({ ...more, _sd: [disclosure.digest] }), disclosure];
  };
  const four = disclosureOf(['salt', 'name', 1, 2]);
  const ROWS: readonly (readonly [string, Reason, JsonObject, ...Disclosure[]])[] = [
    ['another hash', 'unsupported_algorithm', { ...withElement, _sd_alg: 'sha-512' }, element],
    ['a hash that is no name', 'unsupported_algorithm', { ...withElement, _sd_alg: null }, element],
    ['that nothing refers to', 'disclosure_invalid', withElement, element, member],
    ['sent twice', 'disclosure_invalid', withElement, element, element],
    [
      'a digest in two positions',
      'disclosure_invalid',
      holding({ a: [placeholder(element)], b: [placeholder(element)] }),
      element,
    ],
    ['a digest twice in _sd', 'disclosure_invalid', holding({ _sd: [member.digest, member.digest] }), member],
    [
      'a hidden digest in two positions',
      'disclosure_invalid',
      { delegate_payload: [{ constraints: [{ allowed: [placeholder(element), placeholder(element)] }] }] },
    ],
    ['a member instead of an element', 'disclosure_invalid', holding({ list: [placeholder(member)] }), member],
    ['an element instead of a member', 'disclosure_invalid', holding({ _sd: [element.digest] }), element],
    ['over a plain member', 'disclosure_invalid', ...named('a', { a: 2 })],
    ['_sd as a text', 'disclosure_invalid', holding({ _sd: member.digest }), member],
    ['_sd with a number', 'disclosure_invalid', holding({ _sd: [1] })],
    ['_sd of null', 'disclosure_invalid', holding({ _sd: null })],
    ['... as a member', 'disclosure_invalid', holding({ a: { '...': element.digest } }), element],
    ['... at the top', 'disclosure_invalid', { ...holding({}), '...': element.digest }, element],
    ['... as a member, of nothing that is shown', 'disclosure_invalid', holding({ a: { '...': 'x' } })],
    ['... at the top, of nothing that is shown', 'disclosure_invalid', { ...holding({}), '...': 'x' }],
    ['... beside another member', 'disclosure_invalid', holding({ list: [{ '...': element.digest, a: 1 }] }), element],
    ['... with a number', 'disclosure_invalid', holding({ list: [{ '...': 1 }] })],
    ['a second _sd_alg inside', 'disclosure_invalid', holding({ _sd_alg: 'sha-256' })],
    ['an object', 'disclosure_invalid', ...odd({ a: 1 })],
    ['one element', 'disclosure_invalid', ...odd(['salt'])],
    ['four elements, as an element', 'disclosure_invalid', ...odd(['salt', 'name', 1, 2])],
    ['four elements, as a member', 'disclosure_invalid', holding({ _sd: [four.digest] }), four],
    ['a salt that is a number', 'disclosure_invalid', ...odd([1, 'e'])],
    [
      'a name that is a number',
      'disclosure_invalid',
      holding({ _sd: [disclosureOf(['salt', 1, 1]).digest] }),
      disclosureOf(['salt', 1, 1]),
    ],
    ['withheld as a member', 'disclosure_missing', withMember],
    ['withheld as an element', 'disclosure_missing', withElement],
    ['withheld at the top', 'disclosure_missing', { ...holding({}), _sd: [member.digest] }],
    ['withheld in an audience', 'disclosure_missing', { ...holding({}), aud: [placeholder(element)] }],
    ['altered, so that its digest is hidden too', 'disclosure_invalid', withElement, member],
  ];
  for (const [what, reason, claims, ...disclosures] of ROWS)
    it(`${what}: ${reason}`, () => assert.equal(refusal(claims, ...disclosures), reason));

  for (const name of ['_sd', '...', '_sd_alg', '__proto__', 'constructor', 'prototype'])
    it(`named ${name}`, () => assert.equal(refusal(...named(name)), 'disclosure_invalid'));

  for (const name of [
    ...['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'cnf', 'vct', 'status', 'nonce', 'sd_hash', 'issuer_jwt_hash'],
  ])
    it(`${name} of the token itself, though not of the mandate`, () => {
      const disclosure = discloseMember(name, 1);
      assert.equal(refusal({ ...holding({}), _sd: [disclosure.digest] }, disclosure), 'disclosure_invalid');
      assert.equal(refusal({ _sd: [disclosure.digest] }, disclosure), 'disclosure_invalid');
      assert.equal(refusal(...named(name)), 'none');
    });

  it('nothing else of a credential', () => {
    const disclosure = discloseMember('family_name', 'Doe');
    assert.deepEqual(resolve({ _sd: [disclosure.digest] }, disclosure), { family_name: 'Doe' });
  });

  it('delegate_payload itself', () => {
    const disclosure = discloseMember('delegate_payload', []);
    assert.equal(refusal({ _sd: [disclosure.digest] }, disclosure), 'disclosure_invalid');
  });

  for (const [what, text, reason] of [
    ['no base64url', 'W10=', 'disclosure_invalid'],
    ['no JSON', Buffer.from('["salt",').toString('base64url'), 'disclosure_invalid'],
    ['a name twice inside', Buffer.from('["s",{"a":1,"a":2}]').toString('base64url'), 'disclosure_invalid'],
    [
      'seventeen levels',
      Buffer.from(`["s",${'['.repeat(16)}${']'.repeat(16)}]`).toString('base64url'),
      'disclosure_invalid',
    ],
    ['a number that is not exact', Buffer.from('["s",9007199254740993]').toString('base64url'), 'claims_invalid'],
  ] as const)
    it(`with ${what}: ${reason}`, () =>
      assert.equal(
        refusalOf(() => resolveDisclosures(holding({}), [text])),
        reason,
      ));
});

describe('something may be withheld', () => {
  const hidden = placeholder(element);
  const constraint = (body: JsonObject): JsonObject => holding({ constraints: [body] });
  const ROWS: readonly (readonly [string, Reason | 'none', JsonObject])[] = [
    ['of the choices of a constraint', 'none', constraint({ allowed: [hidden] })],
    ['of the acceptable items', 'none', constraint({ items: [{ acceptable_items: [hidden] }] })],
    ['of the sibling mandates', 'none', { delegate_payload: [hidden, {}] }],
    ['of a credential', 'none', { _sd: [member.digest], list: [hidden], a: { _sd: ['x'] } }],
    ['not of the constraints', 'disclosure_missing', holding({ constraints: [hidden] })],
    ['not of the requirements', 'disclosure_missing', constraint({ items: [hidden] })],
    ['not of a constraint', 'disclosure_missing', constraint({ _sd: [member.digest] })],
    ['not of a requirement', 'disclosure_missing', constraint({ items: [{ _sd: [member.digest] }] })],
    ['not of a choice that is shown', 'disclosure_missing', constraint({ allowed: [{ _sd: [member.digest] }] })],
    ['not of a list in a choice', 'disclosure_missing', constraint({ allowed: [{ allowed: [hidden] }] })],
    ['not of a list of that name elsewhere', 'disclosure_missing', holding({ allowed: [hidden] })],
    ['not of acceptable items elsewhere', 'disclosure_missing', constraint({ acceptable_items: [hidden] })],
    ['not by a name that every object has', 'disclosure_missing', holding({ toString: [hidden] })],
  ];
  for (const [what, reason, claims] of ROWS) it(`${what}: ${reason}`, () => assert.equal(refusal(claims), reason));
  it('and is then not there', () =>
    assert.deepEqual(resolve(constraint({ allowed: [hidden, 'b'] })), constraint({ allowed: ['b'] })));
});

describe('disclosures are put in', () => {
  it('as members and as elements, and the marks of SD-JWT are taken out', () =>
    assert.deepEqual(
      resolve(
        { _sd_alg: 'sha-256', iat: 1, ...holding({ a: 1, _sd: [member.digest], list: [placeholder(element), 'f'] }) },
        element,
        member,
      ),
      { iat: 1, delegate_payload: [{ a: 1, m: 1, list: ['e', 'f'] }] },
    ));
  it('one within the other', () => {
    const inner = discloseMember('inner', [placeholder(element)]);
    const outer = discloseElement({ _sd: [inner.digest] });
    assert.deepEqual(resolve({ delegate_payload: [placeholder(outer)] }, outer, element, inner), {
      delegate_payload: [{ inner: ['e'] }],
    });
  });
  it('where there are none to put in', () => assert.deepEqual(resolve(holding({ _sd: [] })), holding({})));

  it('whatever JSON was taken apart, wherever it was cut', () =>
    fc.assert(
      fc.property(document, fc.infiniteStream(fc.boolean()), (value, cuts) => {
        const disclosures: Disclosure[] = [];
        const cut = takenApart(value, () => cuts.next().value === true, disclosures);
        const { root } = resolve({ root: cut, ...holding({}) }, ...disclosures.toReversed());
        assert.deepEqual(root, value);
      }),
      { numRuns: 500 },
    ));
});

/** JSON whose names have no meaning in a token. */
const { document } = fc.letrec<{ document: Json }>((tie) => ({
  document: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom<Json>(null, true, 0, 1.5, 'text', ''),
    fc.array(tie('document'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c', 'exp', 'vct', 'allowed'), tie('document'), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  ),
}));

function takenApart(value: Json, hidden: () => boolean, disclosures: Disclosure[]): Json {
  const kept = (disclosure: Disclosure): Disclosure => {
    disclosures.push(disclosure);
    return disclosure;
  };
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value))
    return value.map((item: Json) => {
      const inner = takenApart(item, hidden, disclosures);
      return hidden() ? placeholder(kept(discloseElement(inner))) : inner;
    });
  const digests: string[] = [];
  const plain: Record<string, Json> = {};
  for (const [name, item] of Object.entries(value)) {
    const inner = takenApart(item, hidden, disclosures);
    if (hidden()) digests.push(kept(discloseMember(name, inner)).digest);
    else plain[name] = inner;
  }
  return digests.length === 0 ? plain : { ...plain, _sd: digests };
}
