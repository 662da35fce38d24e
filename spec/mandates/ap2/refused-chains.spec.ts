import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json, JsonObject } from '../../../src/json/json.ts';
import { chainOf, discloseElement, hashOf, placeholder, sdJwt } from '../../../tools/mandate/maker/tokens.ts';
import {
  changed,
  type Hand,
  withClaims,
  withDisclosureTexts,
  withHeader,
  withMandate,
} from '../../support/ap2/hands.ts';
import { createKey, PROVIDER } from '../../support/ap2/keys.ts';
import { NOW, profileWith } from '../../support/ap2/purchase.ts';
import type { Wishes } from '../../support/ap2/wishes.ts';
import { type ChainRow, closed, handedOn, mint, open, refusal, refuses, withoutDisclosures } from './cases.ts';

const { provider, agent, user, stranger, kidOnly } = mint.parties;

const text = (change: (segment: string) => string): Hand => ({ text: change });
const cnf = (jwk: Json): Wishes => open(withMandate({ cnf: { jwk } }));
const signature = (change: (signature: string) => string): Hand =>
  text((segment) => {
    const [jwt = '', ...rest] = segment.split('~');
    const cut = jwt.lastIndexOf('.') + 1;
    return [jwt.slice(0, cut) + change(jwt.slice(cut)), ...rest].join('~');
  });
/** A hand that replaces the mandate. */
function withDisclosed(value: Json): Hand {
  const whole = discloseElement(value);
  return {
    draft: (d) => ({ ...d, claims: { ...d.claims, delegate_payload: [placeholder(whole)] }, disclosures: [whole] }),
  };
}

refuses('step 5 refuses a chain', [
  ['whose segment is no token', 'mandate_malformed', closed(text(() => 'a.b~'))],
  ['whose segment is empty', 'mandate_malformed', closed(text(() => '~'))],
  ['whose signature has bits to spare', 'mandate_malformed', closed(signature((s) => `${s.slice(0, -1)}B`))],
  ['with a claim that no double holds', 'claims_invalid', closed(withClaims({ n: 2 ** 53 }))],
  ['without an algorithm', 'unsupported_algorithm', open(withHeader({ alg: undefined }))],
  ['of the algorithm none', 'unsupported_algorithm', open(withHeader({ alg: 'none' }))],
  [
    'of the algorithm none without a signature',
    'unsupported_algorithm',
    {
      hands: { closed: { draft: (d) => ({ ...d, header: { ...d.header, alg: 'none' } }), signer: { sign: () => '' } } },
    },
  ],
  ['of a secret', 'unsupported_algorithm', open(withHeader({ alg: 'HS256' }))],
  ['of an algorithm that the operator did not allow', 'unsupported_algorithm', closed(withHeader({ alg: 'EdDSA' }))],
  ['with a critical extension', 'unsupported_algorithm', open(withHeader({ crit: ['exp'] }))],
  ['with an empty list of critical extensions', 'unsupported_algorithm', closed(withHeader({ crit: [] }))],
  ['with b64', 'unsupported_algorithm', closed(withHeader({ b64: true }))],
  ['whose root has no type', 'unexpected_typ', open(withHeader({ typ: undefined }))],
  ['whose root is any JWT', 'unexpected_typ', open(withHeader({ typ: 'JWT' }))],
  ['whose root is a hop', 'unexpected_typ', open(withHeader({ typ: 'kb+sd-jwt' }))],
  ['whose root is of a type in capitals', 'unexpected_typ', open(withHeader({ typ: 'DC+SD-JWT' }))],
  ['that ends in a hop for others', 'unexpected_typ', closed(withHeader({ typ: 'kb+sd-jwt+kb' }))],
  ['that ends in a key binding token', 'unexpected_typ', closed(withHeader({ typ: 'kb+jwt' }))],
  ['that is handed on by a closing hop', 'unexpected_typ', handedOn(withHeader({ typ: 'kb+sd-jwt' }))],
  ['that is handed on by a root', 'unexpected_typ', handedOn(withHeader({ typ: 'dc+sd-jwt' }))],
]);

refuses('step 6 refuses a chain', [
  ['of an issuer that is not trusted', 'untrusted_issuer', { issuer: { key: provider, iss: 'https://other.example' } }],
  ['of an issuer that is no name', 'untrusted_issuer', open(withClaims({ iss: [PROVIDER] }))],
  [
    'of an issuer that is no name, with a key id that is enough',
    'untrusted_issuer',
    {
      issuer: { key: kidOnly, iss: undefined },
      hands: { open: withClaims({ iss: null }) },
    },
  ],
  ['without iss, of an issuer that needs one', 'untrusted_issuer', { issuer: { key: provider, iss: undefined } }],
  ['of a key the issuer does not have', 'unknown_key', open(withHeader({ kid: 'other' }))],
  ['without a key id', 'unknown_key', open(withHeader({ kid: undefined }))],
  ['whose key id is no name', 'unknown_key', open(withHeader({ kid: ['provider-1'] }))],
  ['signed by a stranger', 'invalid_signature', open({ signer: stranger })],
  [
    'signed with an untrusted key that it contains',
    'invalid_signature',
    {
      hands: { open: { ...withHeader({ jwk: stranger.publicJwk }), signer: stranger } },
    },
  ],
  ['with the signature of another token', 'invalid_signature', open(signature(() => provider.sign('other')))],
  ['with a signature of zeros', 'invalid_signature', open(signature(() => 'A'.repeat(86)))],
  ['with half a signature', 'invalid_signature', open(signature((s) => s.slice(0, 40)))],
  ['without a signature', 'invalid_signature', closed(signature(() => ''))],
  ['closed by a stranger', 'invalid_signature', closed({ signer: stranger })],
  ['closed by the provider itself', 'invalid_signature', closed({ signer: provider })],
  [
    'closed by the first agent after it was handed on',
    'invalid_signature',
    { delegated: true, hands: { closed: { signer: agent } } },
  ],
  ['that names no key', 'chain_broken', open(withMandate({ cnf: undefined }))],
  ['that names a key in another form', 'chain_broken', open(withMandate({ cnf: { jkt: 'x' } }))],
  ['that names a key beside its mandate too', 'chain_broken', open(withClaims({ cnf: { jwk: agent.publicJwk } }))],
  ['whose cnf is a text', 'claims_invalid', open(withMandate({ cnf: 'agent-1' }))],
  ['whose key is a text', 'claims_invalid', cnf('agent-1')],
  ['whose key is private', 'claims_invalid', cnf(agent.privateJwk)],
  ['whose key is not on its curve', 'claims_invalid', cnf({ ...agent.publicJwk, x: agent.publicJwk.y ?? '' })],
  ['whose key is one of RSA', 'unsupported_algorithm', cnf({ kty: 'RSA', n: 'AQAB', e: 'AQAB' })],
  ['whose key is for another algorithm', 'unsupported_algorithm', cnf(createKey('k', 'EdDSA').publicJwk)],
]);

const delegating = (mandates: Json): Wishes =>
  closed(withoutDisclosures((claims) => changed(claims, { delegate_payload: mandates })));

refuses('step 7 refuses a chain', [
  ['whose mandate is withheld', 'disclosure_missing', closed(withDisclosureTexts(() => []))],
  ['without any mandate to withhold', 'disclosure_missing', delegating([])],
  ['with two mandates', 'claims_invalid', delegating([{}, {}])],
  ['whose mandate is a text', 'claims_invalid', delegating(['mandate'])],
  ['whose disclosed mandate is a text', 'claims_invalid', closed(withDisclosed('mandate'))],
  ['whose mandates are no list', 'claims_invalid', delegating({})],
  [
    'with a disclosure of nothing',
    'disclosure_invalid',
    open(withDisclosureTexts((texts) => [...texts, discloseElement(1).text])),
  ],
  ['with another hash', 'unsupported_algorithm', closed(withClaims({ _sd_alg: 'sha-512' }))],
]);

const TIMES = ['iat', 'nbf', 'exp'] as const;
refuses('step 8 refuses a chain', [
  ...TIMES.flatMap((name): readonly ChainRow[] =>
    (
      [
        ['a text', `${NOW}`],
        ['a fraction', NOW + 0.5],
        ['negative', -1],
        ['in milliseconds', NOW * 1_000],
        ['null', null],
      ] as const
    ).flatMap(([what, value]): readonly ChainRow[] => [
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
  ...(['iat', 'aud', 'nonce'] as const).flatMap((name): readonly ChainRow[] => [
    [`closed without ${name}`, 'claims_invalid', closed(withClaims({ [name]: undefined }))],
    [`handed on without ${name}`, 'claims_invalid', handedOn(withClaims({ [name]: undefined }))],
  ]),
  ['with an empty nonce', 'claims_invalid', closed(withClaims({ nonce: '' }))],
  ['with a nonce that is a number', 'claims_invalid', closed(withClaims({ nonce: 1 }))],
  ['handed on to several', 'claims_invalid', handedOn(withClaims({ aud: ['a', 'b'] }))],
  ['handed on to an empty audience', 'claims_invalid', handedOn(withClaims({ aud: '' }))],
  ['for an audience of null', 'claims_invalid', closed(withClaims({ aud: null }))],
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
