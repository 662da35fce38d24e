import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../../src/json/types.ts';
import { chainOf, hashOf, sdJwt } from '../../../tools/mandate/maker/tokens.ts';
import { changed, type Hand, withClaims, withHeader, withMandate } from '../../support/ap2/hands.ts';
import { PROVIDER } from '../../support/ap2/keys.ts';
import { NOW, profileWith } from '../../support/ap2/purchase.ts';
import { mint, refusal } from './chains.ts';
import { closed, handedOn, open, type Row, refuses, withoutDisclosures } from './refused-rows.ts';

const { provider, agent, user } = mint.parties;

const TIMES = ['iat', 'nbf', 'exp'] as const;
refuses('step 8 refuses a chain', [
  ...TIMES.flatMap((name): readonly Row[] =>
    (
      [
        ['a text', `${NOW}`],
        ['a fraction', NOW + 0.5],
        ['negative', -1],
        ['in milliseconds', NOW * 1_000],
        ['null', null],
      ] as const
    ).flatMap(([what, value]): readonly Row[] => [
      [`whose ${name} is ${what}`, 'claims_invalid', closed(withClaims({ [name]: value }))],
      [`whose root's mandate has an ${name} that is ${what}`, 'claims_invalid', open(withMandate({ [name]: value }))],
    ]),
  ),
  ['whose open mandate ended', 'expired', { life: -60 }],
  ['whose root ended', 'expired', open(withClaims({ exp: NOW - 60 }))],
  ['whose hop ended', 'expired', closed(withClaims({ exp: NOW - 60 }))],
  ['whose closed mandate ended', 'expired', closed(withMandate({ exp: NOW - 60 }))],
  ['that was handed on for a time that ended', 'expired', handedOn(withMandate({ exp: NOW - 60 }))],
  ['whose root is not valid yet', 'not_yet_valid', open(withClaims({ nbf: NOW + 61 }))],
  ['whose closed mandate is not valid yet', 'not_yet_valid', closed(withMandate({ nbf: NOW + 61 }))],
  ['that is from the future', 'not_yet_valid', closed(withClaims({ iat: NOW + 61 }))],
  ['whose open mandate is from the future', 'not_yet_valid', open(withMandate({ iat: NOW + 61 }))],
]);

const both = { sd_hash: hashOf('x'), issuer_jwt_hash: hashOf('x') };
refuses('step 9 refuses a chain', [
  ['whose hop was made on another', 'chain_broken', closed(withClaims({ sd_hash: hashOf('other') }))],
  [
    'whose hop was made on another token',
    'chain_broken',
    closed(withClaims({ sd_hash: undefined, issuer_jwt_hash: hashOf('other') })),
  ],
  ['whose hop is bound twice', 'chain_broken', closed(withClaims(both))],
  ['whose hop is not bound', 'chain_broken', closed(withClaims({ sd_hash: undefined }))],
  ['whose hop is bound by a number', 'chain_broken', closed(withClaims({ sd_hash: 1 }))],
  ['that was handed on, not bound', 'chain_broken', handedOn(withClaims({ sd_hash: undefined }))],
  ...(['iat', 'aud', 'nonce'] as const).flatMap((name): readonly Row[] => [
    [`closed without ${name}`, 'claims_invalid', closed(withClaims({ [name]: undefined }))],
    [`handed on without ${name}`, 'claims_invalid', handedOn(withClaims({ [name]: undefined }))],
  ]),
  ['with an empty nonce', 'claims_invalid', closed(withClaims({ nonce: '' }))],
  ['with a nonce that is a number', 'claims_invalid', closed(withClaims({ nonce: 1 }))],
  ['handed on to several', 'claims_invalid', handedOn(withClaims({ aud: ['a', 'b'] }))],
  ['handed on to nobody', 'claims_invalid', handedOn(withClaims({ aud: '' }))],
  ['for nobody, as null', 'claims_invalid', closed(withClaims({ aud: null }))],
  ['for another merchant', 'audience_mismatch', closed(withClaims({ aud: 'https://other.example' }))],
  ['for this merchant and others', 'audience_mismatch', closed(withClaims({ aud: [profileWith().audience] }))],
  ['for nearly this merchant', 'audience_mismatch', closed(withClaims({ aud: `${profileWith().audience}/` }))],
  ['that was closed too long ago', 'stale_presentation', {}, { now: NOW - 5 + 361 }],
]);

const vct = (value: string) => withMandate({ vct: value });
refuses('step 10 refuses a chain', [
  ['of another version', 'wrong_mandate_type', closed(vct('mandate.checkout.2'))],
  ['of no version', 'wrong_mandate_type', open(vct('mandate.checkout.open'))],
  ['closed with a mandate of payment', 'wrong_mandate_type', closed(vct('mandate.payment.1'))],
  ['opened with a mandate of payment', 'wrong_mandate_type', open(vct('mandate.payment.open.1'))],
  ['opened with a closed mandate', 'wrong_mandate_type', open(vct('mandate.checkout.1'))],
  ['handed on with a closed mandate', 'wrong_mandate_type', handedOn(vct('mandate.checkout.1'))],
  ['of the other family', 'wrong_mandate_type', {}, { family: 'payment' }],
  [
    'that carries another mandate, plain to see',
    'wrong_mandate_type',
    closed(withoutDisclosures((claims) => changed(claims, { delegate_payload: [{ vct: 'x' }] }))),
  ],
  [
    'that carries no mandate',
    'wrong_mandate_type',
    closed(withoutDisclosures((claims) => changed(claims, { delegate_payload: undefined }))),
  ],
  [
    'that ends in a mandate with a key',
    'chain_broken',
    closed({ ...withMandate({ cnf: { jwk: agent.publicJwk } }), ...withHeader({ typ: 'kb+sd-jwt' }) }),
  ],
  ['that ends in a token with a key', 'chain_broken', closed(withClaims({ cnf: { jwk: agent.publicJwk } }))],
  ['whose open mandate has no end', 'claims_invalid', open(withMandate({ exp: undefined }))],
  ['that was handed on without end', 'claims_invalid', handedOn(withMandate({ exp: undefined }))],
]);

describe('a chain of one refuses', () => {
  const direct = (hand: Hand): Promise<string> => refusal(mint.direct({ hands: { closed: hand } }).payload);
  it('another audience, if it names one', async () => {
    assert.equal(await direct(withClaims({ aud: 'https://other.example' })), 'audience_mismatch');
    assert.equal(await direct(withClaims({ aud: [profileWith().audience] })), 'audience_mismatch');
    assert.equal(await direct(withClaims({ aud: profileWith().audience })), 'none');
  });
  it('to have no end', async () => assert.equal(await direct(withClaims({ exp: undefined })), 'claims_invalid'));
  it('to be open', async () => assert.equal(await refusal(chainOf(mint.open().checkout)), 'wrong_mandate_type'));
  it('a mandate outside delegate_payload', async () => {
    const hand = withoutDisclosures(() => ({ iss: PROVIDER, exp: NOW + 9, vct: 'mandate.checkout.1' }));
    assert.equal(await direct(hand), 'wrong_mandate_type');
  });
  it('a mandate with a key for another hop', async () =>
    assert.equal(await direct(withMandate({ cnf: { jwk: user.publicJwk } })), 'chain_broken'));
});

describe('a credential refuses', () => {
  const credential = (hand: Hand): Promise<string> => refusal(mint.credential({ credential: hand }).payload);
  it('to be of another type', async () => {
    assert.equal(await credential(withClaims({ vct: 'loyalty.card' })), 'wrong_mandate_type');
    assert.equal(await credential(withClaims({ vct: ['com.emvco.dpc'] })), 'wrong_mandate_type');
  });
  it('to come from a provider of mandates', async () => {
    const from: Hand = {
      draft: (draft) => ({
        ...draft,
        header: changed(draft.header, { kid: provider.publicJwk.kid }),
        claims: changed(draft.claims, { iss: PROVIDER }),
      }),
      signer: provider,
    };
    assert.equal(await credential(from), 'wrong_mandate_type');
  });
  it('to carry a mandate as well', async () => {
    const both = ({ cnf = null, ...claims }: JsonObject): JsonObject => ({ ...claims, delegate_payload: [{ cnf }] });
    assert.equal(await credential(withoutDisclosures(both)), 'wrong_mandate_type');
  });
  it('to be all there is', async () => {
    const { segments } = mint.credential();
    assert.equal(await refusal(segments[0] ?? ''), 'wrong_mandate_type');
  });
  it('to have no end, or to name no key', async () => {
    assert.equal(await credential(withClaims({ exp: undefined })), 'claims_invalid');
    assert.equal(await credential(withClaims({ cnf: undefined })), 'chain_broken');
  });
});

describe('a chain put together from parts refuses', () => {
  it('a closed mandate on another open one', async () => {
    const [one, other] = [mint.autonomous(), mint.autonomous()];
    assert.equal(await refusal(chainOf([one.segments[0] ?? '', other.segments[1] ?? ''])), 'chain_broken');
  });
  it('an open one of which something was dropped after closing', async () => {
    const { segments } = mint.autonomous();
    const [jwt = '', ...texts] = (segments[0] ?? '').slice(0, -1).split('~');
    assert.equal(await refusal(chainOf([sdJwt(jwt, texts.slice(1)), segments[1] ?? ''])), 'chain_broken');
  });
});
