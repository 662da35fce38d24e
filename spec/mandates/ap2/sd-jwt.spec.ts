import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../src/json/json.ts';
import type { Reason } from '../../../src/mandates/ap2/reasons.ts';
import {
  decodeBase64url,
  MAX_DISCLOSURES,
  MAX_SEGMENT,
  MAX_SEGMENTS,
  MAX_TOKEN_DEPTH,
  readToken,
  referenceOf,
  resolveDisclosures,
  splitPresentation,
} from '../../../src/mandates/ap2/sd-jwt.ts';
import {
  chainOf,
  type Disclosure,
  discloseElement,
  discloseMember,
  disclosureOf,
  hashOf,
  placeholder,
  sdJwt,
} from '../../../tools/mandate/maker/tokens.ts';
import { refusalOf } from './cases.ts';

const refusal = (presentation: string): string => refusalOf(() => splitPresentation(presentation));
const many = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `d${n}`);

describe('a presentation splits', () => {
  it('into segments whose text has its ~ back', () =>
    assert.deepEqual(splitPresentation('a.b.c~d1~d2~~e.f.g~d3~'), [
      { text: 'a.b.c~d1~d2~', jwt: 'a.b.c', disclosures: ['d1', 'd2'] },
      { text: 'e.f.g~d3~', jwt: 'e.f.g', disclosures: ['d3'] },
    ]));
  it('where segments have no disclosures', () =>
    assert.deepEqual(splitPresentation('a.b.c~~e.f.g~'), [
      { text: 'a.b.c~', jwt: 'a.b.c', disclosures: [] },
      { text: 'e.f.g~', jwt: 'e.f.g', disclosures: [] },
    ]));
  it('back into what was joined', () => {
    for (let segments = 1; segments <= MAX_SEGMENTS; segments += 1)
      for (let disclosures = 0; disclosures < 3; disclosures += 1) {
        const texts = Array.from({ length: segments }, (_, at) => sdJwt(`a.b.${at}`, many(disclosures)));
        assert.deepEqual(
          splitPresentation(chainOf(texts)).map(({ text }) => text),
          texts,
        );
      }
  });
  it('up to its limits', () => {
    assert.equal(refusal(sdJwt('a.b.c', many(MAX_DISCLOSURES))), 'none');
    assert.equal(refusal(`${'a'.repeat(MAX_SEGMENT - 1)}~`), 'none');
  });
});

describe('a presentation is malformed', () => {
  for (const [what, text] of [
    ['that does not end in ~', 'a.b.c~d1'],
    ['that ends in a key binding token', 'a.b.c~d1~e.f.g'],
    ['with an empty disclosure at its end', 'a.b.c~d1~~'],
    ['with five segments', chainOf(many(MAX_SEGMENTS + 1).map((jwt) => `${jwt}~`))],
    ['with a disclosure too many', sdJwt('a.b.c', many(MAX_DISCLOSURES + 1))],
    ['with a disclosure too many in its first segment', chainOf([sdJwt('a.b.c', many(MAX_DISCLOSURES + 1)), 'e.f.g~'])],
    ['with a segment too long', `${'a'.repeat(MAX_SEGMENT)}~`],
    ['that is empty', ''],
  ] as const)
    it(what, () => assert.equal(refusal(text), 'mandate_malformed'));
});

describe('a receipt refers to', () => {
  const leaf = 'e.f.g~d3~';
  it('the leaf of a presentation, alone and with its disclosures', () => {
    const expected = { reference: hashOf('e.f.g'), referenceSdHash: hashOf(leaf) };
    assert.deepEqual(referenceOf(leaf), expected);
    assert.deepEqual(referenceOf(`a.b.c~d1~~${leaf}`), expected);
    assert.deepEqual(referenceOf('a.b.c~~e.f.g~'), { reference: hashOf('e.f.g'), referenceSdHash: hashOf('e.f.g~') });
  });
  it('the leaf of a chain too long to be right', () =>
    assert.equal(referenceOf(`${'x~~'.repeat(9)}${leaf}`)?.reference, hashOf('e.f.g')));
  it('nothing where there is no leaf', () => {
    for (const text of ['', '~', '~~', 'e.f.g', 'e.f~', 'e.f.g~d3', 'e.f.g.h~'])
      assert.equal(referenceOf(text), undefined);
  });
});

describe('strict base64url', () => {
  it('reads back whatever bytes are written', () =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        assert.deepEqual(decodeBase64url(Buffer.from(bytes).toString('base64url')), Buffer.from(bytes));
      }),
    ));

  it('has one spelling for any bytes: what it reads is written again as it was', () =>
    fc.assert(
      fc.property(fc.string({ maxLength: 12, unit: fc.constantFrom(...'AQgw_-19+/= \n.') }), (text) => {
        const bytes = decodeBase64url(text);
        if (bytes !== undefined) assert.equal(bytes.toString('base64url'), text);
      }),
      { numRuns: 5_000 },
    ));

  for (const [what, text] of [
    ['padding', 'QQ=='],
    ['the other alphabet', 'ab+/'],
    ['a line break', 'QUJD\n'],
    ['a space inside', 'QU JD'],
    ['a length that no bytes have', 'QUJDR'],
    ['two characters with the last bit to spare', 'QR'],
    ['two characters with the first of four bits to spare', 'QI'],
    ['two characters with the second of four bits to spare', 'QE'],
    ['three characters with bits to spare', 'QUJ'],
    ['a letter beyond ASCII', 'QUJé'],
  ] as const)
    it(`refuses ${what}`, () => assert.equal(decodeBase64url(text), undefined));

  it('reads nothing as nothing', () => assert.deepEqual(decodeBase64url(''), Buffer.alloc(0)));
});

const base64url = (text: string): string => Buffer.from(text, 'utf8').toString('base64url');
const jws = (head: string, payload: string): string => `${base64url(head)}.${base64url(payload)}.AAAA`;
const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const reasonOf = (text: string): string => {
  const reading = readToken(text);
  return reading.ok ? 'none' : reading.reason;
};

describe('a token is taken apart', () => {
  it('into head, claims, signature, and what was signed', () => {
    const text = jws('{"alg":"ES256"}', '{"iat":1}');
    assert.deepEqual(readToken(text), {
      ok: true,
      token: {
        header: { alg: 'ES256' },
        claims: { iat: 1 },
        signature: Buffer.alloc(3),
        signingInput: text.slice(0, text.lastIndexOf('.')),
      },
    });
  });
  it('also without a signature, which is checked later', () =>
    assert.equal(reasonOf(jws('{}', '{}').slice(0, -4)), 'none'));
  it(`down to ${MAX_TOKEN_DEPTH} levels`, () =>
    assert.equal(reasonOf(jws('{}', `{"a":${nested(MAX_TOKEN_DEPTH - 1)}}`)), 'none'));
});

describe('a token is malformed', () => {
  const right = jws('{}', '{}');
  for (const [what, text] of [
    ['with two parts', right.slice(0, right.lastIndexOf('.'))],
    ['with four parts', `${right}.AAAA`],
    ['with an empty head', right.slice(right.indexOf('.'))],
    ['with an empty payload', `${base64url('{}')}..AAAA`],
    ['with a padded part', right.replace('.', '=.')],
    ['with a head in a second spelling', `e31${right.slice(3)}`],
    ['with a payload in a second spelling', `${base64url('{}')}.e31.AAAA`],
    ['with a signature in a second spelling', `${right.slice(0, -4)}AAB`],
    ['with a list as payload', jws('{}', '[]')],
    ['with a list as head', jws('[]', '{}')],
    ['with null as payload', jws('{}', 'null')],
    ['with a text as payload', jws('{}', '"inexact"')],
    ['with a claim twice', jws('{}', '{"aud":"a","aud":"b"}')],
    ['with a header twice', jws('{"alg":"a","alg":"b"}', '{}')],
    ['with __proto__', jws('{}', '{"__proto__":{}}')],
    ['with one level too many', jws('{}', `{"a":${nested(MAX_TOKEN_DEPTH)}}`)],
    ['with no UTF-8', `${base64url('{}')}.${Buffer.of(0x7b, 0xff, 0x7d).toString('base64url')}.AAAA`],
  ] as const)
    it(what, () => assert.equal(reasonOf(text), 'mandate_malformed'));
});

describe('a token has invalid claims', () => {
  it('with a number that a double cannot hold', () => {
    for (const number of ['9007199254740993', '1e400'])
      assert.equal(reasonOf(jws('{}', `{"exp":${number}}`)), 'claims_invalid');
    assert.equal(reasonOf(jws('{"n":1e400}', '{}')), 'claims_invalid');
  });
});

const texts = (disclosures: readonly Disclosure[]): readonly string[] => disclosures.map(({ text }) => text);
const resolve = (claims: JsonObject, ...disclosures: readonly Disclosure[]): JsonObject =>
  resolveDisclosures(claims, texts(disclosures));
const disclosureRefusal = (claims: JsonObject, ...disclosures: readonly Disclosure[]): Reason | 'none' =>
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
    it(`${what}: ${reason}`, () => assert.equal(disclosureRefusal(claims, ...disclosures), reason));

  for (const name of ['_sd', '...', '_sd_alg', '__proto__', 'constructor', 'prototype'])
    it(`named ${name}`, () => assert.equal(disclosureRefusal(...named(name)), 'disclosure_invalid'));

  for (const name of [
    ...['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'cnf', 'vct', 'status', 'nonce', 'sd_hash', 'issuer_jwt_hash'],
  ])
    it(`${name} of the token itself, though not of the mandate`, () => {
      const disclosure = discloseMember(name, 1);
      assert.equal(disclosureRefusal({ ...holding({}), _sd: [disclosure.digest] }, disclosure), 'disclosure_invalid');
      assert.equal(disclosureRefusal({ _sd: [disclosure.digest] }, disclosure), 'disclosure_invalid');
      assert.equal(disclosureRefusal(...named(name)), 'none');
    });

  it('nothing else of a credential', () => {
    const disclosure = discloseMember('family_name', 'Doe');
    assert.deepEqual(resolve({ _sd: [disclosure.digest] }, disclosure), { family_name: 'Doe' });
  });

  it('delegate_payload itself', () => {
    const disclosure = discloseMember('delegate_payload', []);
    assert.equal(disclosureRefusal({ _sd: [disclosure.digest] }, disclosure), 'disclosure_invalid');
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
  for (const [what, reason, claims] of ROWS)
    it(`${what}: ${reason}`, () => assert.equal(disclosureRefusal(claims), reason));
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
