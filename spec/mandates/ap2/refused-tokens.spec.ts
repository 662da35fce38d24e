import type { Json } from '../../../src/json/types.ts';
import { discloseElement, placeholder } from '../../../tools/mandate/maker/tokens.ts';
import {
  changed,
  type Hand,
  withClaims,
  withDisclosureTexts,
  withHeader,
  withMandate,
} from '../../support/ap2/hands.ts';
import { createKey, PROVIDER } from '../../support/ap2/keys.ts';
import type { Wishes } from '../../support/ap2/wishes.ts';
import { mint } from './chains.ts';
import { closed, handedOn, open, refuses, withoutDisclosures } from './refused-rows.ts';

const { provider, agent, stranger, kidOnly } = mint.parties;

const text = (change: (segment: string) => string): Hand => ({ text: change });
const cnf = (jwk: Json): Wishes => open(withMandate({ cnf: { jwk } }));
const signature = (change: (signature: string) => string): Hand =>
  text((segment) => {
    const [jwt = '', ...rest] = segment.split('~');
    const cut = jwt.lastIndexOf('.') + 1;
    return [jwt.slice(0, cut) + change(jwt.slice(cut)), ...rest].join('~');
  });
/** A hand that puts something else in the place of the mandate. */
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
  ['of an issuer nobody trusts', 'untrusted_issuer', { issuer: { key: provider, iss: 'https://other.example' } }],
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
    'signed by the stranger whose key it brings',
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
  ['that names a key in other words', 'chain_broken', open(withMandate({ cnf: { jkt: 'x' } }))],
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
