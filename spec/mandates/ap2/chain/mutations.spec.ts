import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../../src/json/types.ts';
import { referenceOf } from '../../../../src/mandates/ap2/sd-jwt.ts';
import { base64url, chainOf, sdJwt } from '../../../../tools/mandate/maker/tokens.ts';
import { mint, refusal } from './chains.ts';

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
