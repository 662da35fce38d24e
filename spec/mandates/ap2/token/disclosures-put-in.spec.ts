import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../../src/json/types.ts';
import { resolveDisclosures } from '../../../../src/mandates/ap2/token/disclosures.ts';
import {
  type Disclosure,
  discloseElement,
  discloseMember,
  placeholder,
} from '../../../../tools/mandate/maker/tokens.ts';

const resolve = (claims: JsonObject, ...disclosures: readonly Disclosure[]): JsonObject =>
  resolveDisclosures(
    claims,
    disclosures.map(({ text }) => text),
  );
/** A token with this as its plain mandate. */
const holding = (mandate: JsonObject): JsonObject => ({ delegate_payload: [mandate] });
const element = discloseElement('e');
const member = discloseMember('m', 1);

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

/** JSON whose names mean nothing to anybody. */
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
