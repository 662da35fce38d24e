import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Reason } from '../../../../src/mandates/ap2/reasons.ts';
import { lineItems } from '../../../../tools/mandate/maker/constraints.ts';
import { closedCheckout, openMandate, VCT } from '../../../../tools/mandate/maker/contents.ts';
import { hopDraft, rootDraft } from '../../../../tools/mandate/maker/drafts.ts';
import { chainOf, type Draft, hashOf } from '../../../../tools/mandate/maker/tokens.ts';
import { type Changes, changed, forge } from '../../../support/ap2/hands.ts';
import { createKey, PROVIDER } from '../../../support/ap2/keys.ts';
import { AUDIENCE, NOW } from '../../../support/ap2/purchase.ts';
import { mint, refusal } from './chains.ts';

/** Changes the token at one position of a chain; `before` is the segment that it was made on. */
type Edit = (draft: Draft, before: string, closing: boolean) => Draft;

const { jwt: checkout, jti } = mint.checkout();
const WANTED = [
  lineItems([{ id: 'line_1', acceptable: [{ id: 'market_report', title: 'Market report' }], quantity: 1 }]),
];
const HOLDERS = Array.from({ length: 5 }, (_, at) => createKey(`holder-${at}`));

/** So many segments: a root, sub-agents, and the hop that closes. */
function chain(length: number, at = 0, edit: Edit = (draft) => draft): string {
  const segments: string[] = [];
  for (const [position, holder] of HOLDERS.slice(0, length).entries()) {
    const closing = position === length - 1;
    const content = closing
      ? closedCheckout(checkout)
      : openMandate(VCT.openCheckout, WANTED, { iat: NOW - 60, exp: NOW + 60, holder: holder.publicJwk });
    const previous = segments.at(-1) ?? '';
    const signer = position === 0 ? mint.parties.provider : (HOLDERS[position - 1] ?? holder);
    const hop = { previous, aud: closing ? AUDIENCE : 'sub-agent', nonce: closing ? jti : 'any', iat: NOW - 5 };
    const drafted = (c: typeof content): Draft =>
      position === 0 ? rootDraft(c, { iss: PROVIDER, iat: NOW - 60 }, signer) : hopDraft(c, hop, signer);
    const hand = position === at && at > 0 ? { draft: (draft: Draft) => edit(draft, previous, closing) } : {};
    segments.push(forge(content, drafted, signer, hand));
  }
  return chainOf(segments);
}

const claims =
  (changes: Changes): Edit =>
  (draft) => ({ ...draft, claims: changed(draft.claims, changes) });
const typ =
  (closing: string, handedOn: string): Edit =>
  (draft, _before, isClosing) => ({
    ...draft,
    header: changed(draft.header, { typ: isClosing ? closing : handedOn }),
  });
/** Bound to the token before alone (`jwt`), or to all of its segment. */
const bound =
  (by: 'sd_hash' | 'issuer_jwt_hash', to: 'jwt' | 'segment', besides: Changes = {}): Edit =>
  (draft, before, closing) => {
    const hash = hashOf(to === 'jwt' ? (before.split('~')[0] ?? '') : before);
    return claims({ ...besides, [by]: hash })(draft, before, closing);
  };

describe('a chain', () => {
  for (const length of [2, 3, 4])
    it(`may have ${length} segments`, async () => assert.equal(await refusal(chain(length)), 'none'));
  it('may not have 5', async () => assert.equal(await refusal(chain(5)), 'mandate_malformed'));
});

const EDITS: readonly (readonly [what: string, result: Reason | 'none', edit: Edit])[] = [
  ['bound to the token before alone', 'none', bound('issuer_jwt_hash', 'jwt', { sd_hash: undefined })],
  ['bound both ways, each of them right', 'chain_broken', bound('issuer_jwt_hash', 'jwt')],
  ['bound in no way', 'chain_broken', claims({ sd_hash: undefined })],
  [
    'whose hash of the token covers the disclosures',
    'chain_broken',
    bound('issuer_jwt_hash', 'segment', { sd_hash: undefined }),
  ],
  ['whose hash of all covers the token alone', 'chain_broken', bound('sd_hash', 'jwt')],
  ['without nonce', 'claims_invalid', claims({ nonce: undefined })],
  ['without audience', 'claims_invalid', claims({ aud: undefined })],
  ['without time', 'claims_invalid', claims({ iat: undefined })],
  ['from the edge of the future', 'none', claims({ iat: NOW + 60 })],
  ['from the future', 'not_yet_valid', claims({ iat: NOW + 61 })],
  ['in the last second of its end', 'none', claims({ exp: NOW - 59 })],
  ['that ended', 'expired', claims({ exp: NOW - 60 })],
  ['that has not begun', 'not_yet_valid', claims({ nbf: NOW + 61 })],
  ['that hides something', 'disclosure_missing', claims({ _sd: [hashOf('decoy')] })],
  ['in the spelling of the draft', 'none', typ('kb-sd-jwt', 'kb-sd-jwt+kb')],
  ['of the type of the other position', 'unexpected_typ', typ('kb+sd-jwt+kb', 'kb+sd-jwt')],
  ['of the type of a root', 'unexpected_typ', typ('dc+sd-jwt', 'dc+sd-jwt')],
  [
    'with a key for what it does not hand on to',
    'chain_broken',
    claims({ cnf: { jwk: createKey('other').publicJwk } }),
  ],
];

for (const at of [1, 2, 3])
  describe(`hop ${at} of 3`, () => {
    for (const [what, result, edit] of EDITS)
      it(`${what}: ${result}`, async () => assert.equal(await refusal(chain(4, at, edit)), result));
  });
