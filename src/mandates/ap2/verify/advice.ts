/** The message of each refusal, as agents read it. */

import type { Reason } from '../model/reasons.ts';

const AGAIN = 'Make one for the fresh checkout in authorization.';
const ANOTHER = 'Ask the user for another one.';

/**
 * For every reason (ap2 8) what is wrong and what would be right. The sentences quote nothing of
 * the mandate; `authorization` is the challenge that the refusal carries.
 */
export const ADVICE: Readonly<Record<Reason, string>> = {
  mandate_required:
    'This resource needs an AP2 mandate. Make one for the checkout in authorization and send the same call again with it: over HTTP in the ' +
    'header Agent-Authorization, over MCP and A2A as the input member _authorization.',
  envelope_too_large: 'The envelope of the mandate is longer than maxEnvelopeBytes in authorization.',
  envelope_encoding:
    'The envelope of the mandate must be the base64url of JSON, once and with nothing around it: only A-Z, a-z, 0-9, - and _, no padding.',
  envelope_json: 'The envelope of the mandate does not decode to JSON in which every name is there once.',
  envelope_schema:
    'The envelope of the mandate must be {"method":"ap2","version":"0.2","payload":"..."}, with payment_mandate as the only other member; ' +
    'payload and payment_mandate are SD-JWTs as text.',
  unsupported_version:
    'The envelope of the mandate must say "method":"ap2" and "version":"0.2". Mandates of AP2 0.1 are not accepted. ' +
    AGAIN,
  mandate_malformed:
    'The mandate cannot be split into its tokens: each is a JWT, its disclosures and a ~ after every one of these; at most four are ' +
    'joined, by one more ~.',
  unsupported_algorithm:
    'A token of the mandate is not signed with an algorithm in authorization, or not with that of its key.',
  unexpected_typ:
    'A token of the mandate has the wrong typ for its place: dc+sd-jwt for the first, kb+sd-jwt for the last of several.',
  untrusted_issuer:
    'This merchant does not trust the issuer of the mandate. It trusts those under issuers in authorization.',
  unknown_key: 'This merchant trusts the issuer of the mandate, and knows no key of it with that kid.',
  invalid_signature:
    'A signature of the mandate is wrong: its token was changed, or not signed with the key that its kid or the cnf before it names.',
  disclosure_invalid:
    'A disclosure of the mandate was changed, is there twice, or belongs to nothing: each is the base64url of [salt, value] or ' +
    '[salt, name, value].',
  disclosure_missing:
    'The mandate hides something that decides about this purchase. Only entries of allowed and acceptable_items may stay hidden.',
  chain_broken:
    'The tokens of the mandate do not belong together: all but the last have a key in cnf, and each later one has the sd_hash of the one ' +
    'before it.',
  claims_invalid:
    'A claim of the mandate is missing or not of its form: times are whole seconds, amounts whole minor units, and what is not closed ' +
    'for this call needs an exp.',
  audience_mismatch:
    'The mandate is for another audience: the aud of its last token must be audience in authorization.',
  nonce_mismatch: `The nonce of the last token is not that of the checkout in the mandate. ${AGAIN}`,
  expired: `The mandate has expired. ${ANOTHER}`,
  not_yet_valid: 'The mandate is not valid yet. If it should be, compare the clock of its signer.',
  stale_presentation: `The last token of the mandate was signed too long ago. ${AGAIN}`,
  revoked: `The mandate was revoked. ${ANOTHER}`,
  constraint_unresolved:
    'This merchant cannot judge a constraint of the mandate. It knows the types under constraints in authorization.',
  wrong_mandate_type:
    'A mandate has the wrong vct for its place: mandate.checkout.1 ends payload, mandate.payment.1 ends payment_mandate, and the open ' +
    'ones of the same kind come before them.',
  checkout_hash_mismatch: 'checkout_hash is not the SHA-256 (base64url) of the checkout_jwt in the mandate.',
  checkout_signature_invalid: `The checkout in the mandate was not signed by this merchant. ${AGAIN}`,
  checkout_invalid: `The checkout in the mandate is not one for this merchant. ${AGAIN}`,
  checkout_expired: `The checkout in the mandate has expired. ${AGAIN}`,
  resource_mismatch: `The checkout in the mandate is for another resource. ${AGAIN}`,
  input_mismatch: `The checkout in the mandate is for another input. ${AGAIN}`,
  amount_mismatch: `The amount in the mandate is not the price of this call. ${AGAIN}`,
  currency_mismatch: `The currency in the mandate is not that of this call. ${AGAIN}`,
  payee_mismatch:
    'The mandate is for another merchant: its merchant and payee must be those of the checkout in authorization.',
  payment_method_mismatch:
    'The mandate is for another way to pay: method, network, asset and destination must be those of this call, and what is free takes ' +
    'no payment mandate.',
  payer_mismatch: 'The payment comes from another address than the payment mandate names as its payment_instrument.',
  payment_binding_mismatch:
    'The payment mandate is for another checkout or checkout mandate, or, with bindPaymentNonce, the nonce of the payment is not its ' +
    'keccak256.',
  payment_mandate_required: 'This resource needs a payment mandate too, as payment_mandate beside payload.',
  preset_mismatch: 'The closed mandate says something else than its open mandate has fixed already.',
  constraint_violated: `This purchase is beyond a limit of the open mandate. ${ANOTHER}`,
  budget_exceeded: `The budget of the open mandate has not enough left for this purchase. ${ANOTHER}`,
  recurrence_exceeded: `The open mandate has been used as often as it may be. ${ANOTHER}`,
  recurrence_too_soon:
    'The open mandate has been used in this period. It can be used again when the next one begins (UTC).',
  replayed: `This mandate or its checkout has already been used, or may have been. ${AGAIN}`,
  open_mandate_spent: `The open mandate was good for one purchase and has been used, or is older than what this merchant remembers. ${ANOTHER}`,
  provider_unavailable: 'This mandate cannot be checked right now. Send the same call again.',
};
