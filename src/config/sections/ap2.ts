/** `authorization.ap2`: whom to trust for mandates, and the keys that sign checkouts. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import { readSigningKey } from '../../crypto/signing-key.ts';
import type { Ap2Profile } from '../../mandates/ap2/model/profile.ts';
import type { Ap2Config, CheckoutKeySettings } from '../../mandates/ap2/trust/settings.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import type { GatewayConfig } from '../document/config.ts';
import type { Ap2Document, ConfigDocument } from '../document/document.ts';
import { deriveIssuers } from './ap2-issuers.ts';
import type { PriceAsset } from './pricing.ts';
import { type KeyUses, readP256Jwk } from './published-keys.ts';

const AT = 'authorization.ap2';
const AP2 = schema.properties.authorization.properties.ap2.properties;
/** The currency of a free resource where none is configured (ISO 4217: no currency). */
const NO_CURRENCY = 'XXX';

/** What resources must know to require mandates: `unsound` when the section was refused. */
export type MandateSetting =
  | { readonly kind: 'off' }
  | { readonly kind: 'unsound' }
  | { readonly kind: 'on'; readonly exponents: ReadonlyMap<string, number>; readonly trusting: boolean };

/** Undefined when it is switched off, or after a problem. `merchant`: undefined if refused. */
export function deriveAp2(
  document: ConfigDocument,
  merchant: GatewayConfig['merchant'] | undefined,
  asset: PriceAsset,
  uses: KeyUses,
  problems: ProblemList,
): Ap2Config | undefined {
  if (!problems.readable(AT) || !problems.sound(`${AT}.enabled`)) return undefined;
  const ap2 = document.authorization?.ap2;
  if (!(ap2?.enabled ?? AP2.enabled.default) || ap2 === undefined) return undefined;
  const checkout = problems.sound(`${AT}.checkout`) ? checkoutKeys(ap2.checkout, uses, problems) : undefined;
  const issuers = deriveIssuers(ap2.issuers, `${AT}.issuers`, uses, problems);
  const exponents = problems.sound(`${AT}.currencies`) ? exponentsOf(ap2, asset, problems) : undefined;
  if (merchant === undefined || checkout === undefined || exponents === undefined) return undefined;
  return problems.sound(AT) ? { profile: profileOf(ap2, merchant, exponents), issuers, checkout } : undefined;
}

export function mandateSetting(
  document: ConfigDocument,
  ap2: Ap2Config | undefined,
  problems: ProblemList,
): MandateSetting {
  if (!problems.readable(AT) || !problems.sound(`${AT}.enabled`)) return { kind: 'unsound' };
  if (document.authorization?.ap2?.enabled !== true) return { kind: 'off' };
  if (ap2 === undefined) return { kind: 'unsound' };
  const trusting = (document.authorization.ap2.issuers ?? []).length > 0;
  return { kind: 'on', exponents: ap2.profile.exponents, trusting };
}

function profileOf(
  ap2: Ap2Document,
  merchant: GatewayConfig['merchant'],
  exponents: Ap2Profile['exponents'],
): Ap2Profile {
  const { clockSkewSeconds, maxPresentationAgeSeconds, maxEnvelopeBytes, algorithms, policy } = ap2;
  return {
    audience: ap2.audience ?? merchant.publicBaseUrl,
    issuer: merchant.publicBaseUrl,
    merchant: { id: merchant.id, name: merchant.name },
    clockSkewSeconds: clockSkewSeconds ?? AP2.clockSkewSeconds.default,
    maxPresentationAgeSeconds: maxPresentationAgeSeconds ?? AP2.maxPresentationAgeSeconds.default,
    maxEnvelopeBytes: maxEnvelopeBytes ?? AP2.maxEnvelopeBytes.default,
    algorithms: new Set(['ES256', ...(algorithms ?? [])]),
    checkoutTtlSeconds: ap2.checkout?.ttlSeconds ?? AP2.checkout.properties.ttlSeconds.default,
    exponents,
    policy: {
      paymentMandate: policy?.paymentMandate ?? 'optional',
      bindPaymentNonce: policy?.bindPaymentNonce ?? AP2.policy.properties.bindPaymentNonce.default,
    },
  };
}

/** The token's own digits are fixed: other ones would make a limit another amount. */
function exponentsOf(ap2: Ap2Document, asset: PriceAsset, problems: ProblemList): ReadonlyMap<string, number> {
  const exponents = new Map([[NO_CURRENCY, 0]]);
  if (asset.kind === 'known') for (const currency of asset.currencies) exponents.set(currency, asset.decimals);
  for (const [currency, digits] of Object.entries(ap2.currencies ?? {})) {
    const known = exponents.get(currency);
    if (known !== undefined && known !== digits)
      problems.add(memberPath(`${AT}.currencies`, currency), `must be ${known}, or left out: it is known already`);
    exponents.set(currency, digits);
  }
  return exponents;
}

function checkoutKeys(
  document: Ap2Document['checkout'],
  uses: KeyUses,
  problems: ProblemList,
): CheckoutKeySettings | undefined {
  if (document === undefined) {
    const wanted = `{ signingKey: "\${file:/run/secrets/ap2-checkout-key.pem}" }`;
    problems.add(`${AT}.checkout`, `is missing: the key that signs checkouts and receipts, such as ${wanted}`);
    return undefined;
  }
  const { signingKey, kid, alsoTrust = [] } = document;
  const reading = readSigningKey(signingKey);
  if (reading.ok) {
    const name = kid ?? reading.key.publicJwk.kid;
    uses.note(`${AT}.checkout.signingKey`, reading.key.publicJwk);
    if (kid !== undefined && uses.ids.has(kid))
      problems.add(`${AT}.checkout.kid`, 'must not be the name of the key of the agent card or of one of signing');
    uses.ids.add(name);
  } else problems.add(`${AT}.checkout.signingKey`, reading.message);
  const trusted = alsoTrust.flatMap((jwk, index) => {
    const path = `${AT}.checkout.alsoTrust[${index}]`;
    const key = readP256Jwk(jwk, path, problems);
    if (key === undefined) return [];
    if (uses.ids.has(key.kid))
      problems.add(path, 'must have a kid that no other key of checkouts, of the agent card and of signing has');
    uses.ids.add(key.kid);
    uses.note(path, key);
    return [key];
  });
  return reading.ok ? { signingKey, kid, alsoTrust: trusted } : undefined;
}
