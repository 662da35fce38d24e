import type { PublicJwk } from '../../../src/crypto/signing-key.ts';
import type { JsonObject } from '../../../src/json/types.ts';
import { CHECKOUT_PROFILE } from '../../../src/mandates/ap2/checkout/checkout-claims.ts';
import type { Ap2Profile } from '../../../src/mandates/ap2/model/profile.ts';
import { type IssuerSettings, staticIssuer } from '../../../src/mandates/ap2/trust/issuer.ts';
import { Members } from '../members.ts';

/** The shop that a file of vectors is presented to. */
export interface Shop {
  readonly profile: Ap2Profile;
  readonly issuers: readonly IssuerSettings[];
  /** Whose checkouts count. */
  readonly checkoutKeys: readonly PublicJwk[];
}

const CONFIG = [
  'audience',
  'merchantId',
  'merchantIssuer',
  'profile',
  'clockSkewSeconds',
  'maxPresentationAgeSeconds',
  'maxEnvelopeBytes',
  'algorithms',
  // For other verifiers: this one accepts the types of ap2 3, whatever the file lists.
  'rootTyps',
  'currencies',
  'issuers',
  'checkoutKeys',
];
const ISSUER = ['id', 'keys', 'credentialVct', 'allowKidOnly'];
/** Nothing is handed out here. */
const NO_CHECKOUTS_SECONDS = 300;

/** @throws Error that says what of it cannot be used */
export function readShop(value: JsonObject): Shop {
  const config = new Members(value, 'config', CONFIG);
  if (config.text('profile') !== CHECKOUT_PROFILE)
    throw new Error(`config.profile must be ${CHECKOUT_PROFILE}, the one profile that there is`);
  const id = config.text('merchantId');
  return {
    profile: {
      audience: config.text('audience'),
      issuer: config.text('merchantIssuer'),
      merchant: { id, name: id },
      clockSkewSeconds: config.number('clockSkewSeconds'),
      maxPresentationAgeSeconds: config.number('maxPresentationAgeSeconds'),
      maxEnvelopeBytes: config.number('maxEnvelopeBytes'),
      algorithms: new Set(config.texts('algorithms')),
      checkoutTtlSeconds: NO_CHECKOUTS_SECONDS,
      exponents: readCurrencies(config.object('currencies')),
      policy: { paymentMandate: 'optional', bindPaymentNonce: false },
    },
    issuers: config.objects('issuers').map(readIssuer),
    checkoutKeys: config.objects('checkoutKeys').map(readCheckoutKey),
  };
}

function readCurrencies(value: JsonObject): ReadonlyMap<string, number> {
  const currencies = new Members(value, 'config.currencies', Object.keys(value));
  return new Map(Object.keys(value).map((currency) => [currency, currencies.number(currency)]));
}

function readIssuer(value: JsonObject, index: number): IssuerSettings {
  const where = `config.issuers[${index}]`;
  const issuer = new Members(value, where, ISSUER);
  const settings = {
    id: issuer.text('id'),
    keys: issuer.objects('keys'),
    credentialVct: issuer.optional('credentialVct', issuer.texts),
    allowKidOnly: issuer.optional('allowKidOnly', issuer.flag),
  };
  try {
    return staticIssuer(settings);
  } catch (cause) {
    throw new Error(`${where}: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
}

function readCheckoutKey(value: JsonObject, index: number): PublicJwk {
  const key = new Members(value, `config.checkoutKeys[${index}]`, ['kty', 'crv', 'x', 'y', 'kid', 'use', 'alg']);
  if (key.text('crv') !== 'P-256' || key.text('kty') !== 'EC')
    throw new Error(`config.checkoutKeys[${index}] must be of curve P-256: checkouts are signed with ES256`);
  const { x, y, kid } = { x: key.text('x'), y: key.text('y'), kid: key.text('kid') };
  return { kty: 'EC', crv: 'P-256', x, y, kid, use: 'sig', alg: 'ES256' };
}
