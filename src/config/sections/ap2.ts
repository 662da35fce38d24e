/** `authorization.ap2`: whom to trust for mandates, and the keys that sign checkouts. */

import { X509Certificate } from 'node:crypto';
import { readSigningKey } from '../../crypto/signing-key.ts';
import type { CheckoutKeySettings } from '../../mandates/ap2/checkout.ts';
import { didWebUrl, isDidKey, isDidWeb, keysOfDidKey } from '../../mandates/ap2/did.ts';
import { type IssuerSettings, type KeySource, roleOf } from '../../mandates/ap2/issuers.ts';
import { readStaticKeys } from '../../mandates/ap2/keys.ts';
import type { Ap2Config } from '../../mandates/ap2/purchase.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import type { GatewayConfig } from '../document/config.ts';
import type { ConfigDocument } from '../document/document.ts';
import { FORBIDDEN_HOST, hostKind, readHttpUrl } from '../document/endpoints.ts';
import { pemCertificates, readBoundedFile } from '../document/parse.ts';
import { type KeyUses, readP256Jwk } from './keys.ts';
import type { PriceAssets } from './resources.ts';

type Ap2Document = ConfigDocument['authorization']['ap2'];
type IssuerDocument = NonNullable<Ap2Document['issuers']>[number];

const AT = 'authorization.ap2';
/** The currency of a free resource where none is configured (ISO 4217: no currency). */
const NO_CURRENCY = 'XXX';
/** Largest file of root certificates, bytes. */
const MAX_ROOTS_BYTES = 262_144;

/** The facts that resources need to require mandates: `unsound` when the section was refused. */
export type MandateSetting =
  | { readonly kind: 'off' }
  | { readonly kind: 'unsound' }
  | { readonly kind: 'on'; readonly exponents: ReadonlyMap<string, number>; readonly trusting: boolean };

/** Undefined when it is switched off, or after a problem. `merchant`: undefined if refused. */
export function deriveAp2(
  document: ConfigDocument,
  merchant: GatewayConfig['merchant'] | undefined,
  assets: PriceAssets,
  uses: KeyUses,
  problems: ProblemList,
): Ap2Config | undefined {
  if (!problems.readable(AT) || !problems.sound(`${AT}.enabled`)) return undefined;
  const { ap2 } = document.authorization;
  if (!ap2.enabled) return undefined;
  const { audience, clockSkewSeconds, maxPresentationAgeSeconds, maxEnvelopeBytes, algorithms, policy } = ap2;
  const checkout = problems.sound(`${AT}.checkout`) ? checkoutKeys(ap2.checkout, uses, problems) : undefined;
  const issuers = deriveIssuers(ap2.issuers, `${AT}.issuers`, uses, problems);
  const exponents = problems.sound(`${AT}.currencies`) ? exponentsOf(ap2, assets, problems) : undefined;
  if (merchant === undefined || checkout === undefined || exponents === undefined || !problems.sound(AT))
    return undefined;
  const profile = {
    audience: audience ?? merchant.publicBaseUrl,
    issuer: merchant.publicBaseUrl,
    merchant: { id: merchant.id, name: merchant.name },
    clockSkewSeconds,
    maxPresentationAgeSeconds,
    maxEnvelopeBytes,
    algorithms: new Set(['ES256', ...algorithms]),
    checkoutTtlSeconds: checkout.ttlSeconds,
    exponents,
    policy,
  };
  return { profile, issuers, checkout };
}

export function mandateSetting(
  document: ConfigDocument,
  ap2: Ap2Config | undefined,
  problems: ProblemList,
): MandateSetting {
  if (!problems.readable(AT) || !problems.sound(`${AT}.enabled`)) return { kind: 'unsound' };
  if (!document.authorization.ap2.enabled) return { kind: 'off' };
  if (ap2 === undefined) return { kind: 'unsound' };
  const trusting = (document.authorization.ap2.issuers ?? []).length > 0;
  return { kind: 'on', exponents: ap2.profile.exponents, trusting };
}

/** The decimals of the payment token are fixed: other ones would change the amount of a limit. */
function exponentsOf(ap2: Ap2Document, assets: PriceAssets, problems: ProblemList): ReadonlyMap<string, number> {
  const exponents = new Map([[NO_CURRENCY, 0]]);
  // The name of two tokens has the decimals of the first: a price is exact in both.
  for (const { currencies, decimals } of assets.kind === 'known' ? assets.entries.toReversed() : [])
    for (const currency of currencies) exponents.set(currency, decimals);
  for (const [currency, digits] of Object.entries(ap2.currencies)) {
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
): (CheckoutKeySettings & { readonly ttlSeconds: number }) | undefined {
  if (document === undefined) {
    const wanted = `{ signingKey: "\${file:/run/secrets/ap2-checkout-key.pem}" }`;
    problems.add(`${AT}.checkout`, `is missing: the key that signs checkouts and receipts, such as ${wanted}`);
    return undefined;
  }
  const { signingKey, kid, alsoTrust, ttlSeconds } = document;
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
  return reading.ok ? { signingKey, kid, alsoTrust: trusted, ttlSeconds } : undefined;
}

/** Issuers that were refused are left out. */
function deriveIssuers(
  documents: readonly IssuerDocument[] | undefined,
  path: string,
  uses: KeyUses,
  problems: ProblemList,
): readonly IssuerSettings[] {
  if (documents === undefined || !problems.readable(path)) return [];
  const ids = new Set<string>();
  const kidOnly = new Map<string, string>();
  return documents.flatMap((document, index) => {
    const at = memberPath(path, index);
    if (!problems.sound(at)) return [];
    if (ids.has(document.id)) problems.add(`${at}.id`, 'is there already; one issuer is one entry');
    ids.add(document.id);
    const source = sourceOf(document, at, problems);
    if (source === undefined) return [];
    if (source.kind === 'static') {
      for (const key of new Set(source.keys.values())) uses.note(`${at}.keys`, key.key);
      if (document.allowKidOnly) noteKidOnly(source, at, kidOnly, problems);
    } else if (document.allowKidOnly)
      problems.add(`${at}.allowKidOnly`, 'must be false, or have keys: only those are known before a token comes');
    const { id, credentialVct, allowKidOnly } = document;
    return [{ id, role: roleOf(credentialVct), allowKidOnly, source }];
  });
}

/** Without `iss` the `kid` alone chooses, so it must name one key among all such issuers. */
function noteKidOnly(
  source: Extract<KeySource, { kind: 'static' }>,
  at: string,
  seen: Map<string, string>,
  problems: ProblemList,
): void {
  for (const kid of source.keys.keys()) {
    const other = seen.get(kid);
    if (other !== undefined)
      problems.add(
        `${at}.keys`,
        `must not have a kid of ${other}.keys: with allowKidOnly the kid alone chooses the key`,
      );
    else seen.set(kid, at);
  }
}

function sourceOf(document: IssuerDocument, at: string, problems: ProblemList): KeySource | undefined {
  const { id, keys, jwksUri, x5cRoots } = document;
  const named = isDidKey(id) || isDidWeb(id);
  const sources = [keys, jwksUri, x5cRoots, named || undefined].filter((source) => source !== undefined);
  if (sources.length !== 1) {
    const message =
      'must have exactly one of keys, jwksUri and x5cRoots; an id that is a did:web or did:key needs none';
    problems.add(at, message);
    return undefined;
  }
  if (keys !== undefined) return configured(keys, at, problems);
  if (jwksUri !== undefined) return jwks(jwksUri, `${at}.jwksUri`, problems);
  if (x5cRoots !== undefined) return certificates(id, x5cRoots, at, problems);
  return isDidKey(id) ? ownName(id, at, problems) : website(id, at, problems);
}

function configured(
  jwks: NonNullable<IssuerDocument['keys']>,
  at: string,
  problems: ProblemList,
): KeySource | undefined {
  const { keys, faults } = readStaticKeys(jwks);
  for (const { index, message } of faults) problems.add(`${at}.keys[${index}]`, message);
  return faults.length === 0 ? { kind: 'static', keys } : undefined;
}

function jwks(text: string, path: string, problems: ProblemList): KeySource | undefined {
  const reading = readHttpUrl(text, false);
  const fault = reading.ok ? remoteFault(reading.url) : reading.message;
  if (fault !== undefined) problems.add(path, fault);
  return reading.ok && fault === undefined ? { kind: 'jwks', url: reading.url.href } : undefined;
}

/** The keys decide who may spend, so they must come from the configured host and no other. */
function remoteFault({ protocol, username, password, hash, href }: URL): string | undefined {
  if (protocol !== 'https:') return 'must be https: otherwise anyone on the way could replace the keys';
  if (username !== '' || password !== '') return 'must not have credentials in the URL';
  if (hash !== '') return 'must not have a fragment';
  return hostKind(new URL(href)) === 'forbidden' ? FORBIDDEN_HOST : undefined;
}

function ownName(id: string, at: string, problems: ProblemList): KeySource | undefined {
  const keys = keysOfDidKey(id);
  if (keys === undefined)
    problems.add(`${at}.id`, 'must be a did:key of P-256, Ed25519 or secp256k1: z and base58btc, in its one spelling');
  return keys && { kind: 'static', keys };
}

function website(id: string, at: string, problems: ProblemList): KeySource | undefined {
  const url = didWebUrl(id);
  if (url === undefined || hostKind(new URL(url)) === 'forbidden') {
    problems.add(`${at}.id`, 'must be a did:web with a host name in lower case, such as did:web:agents.example');
    return undefined;
  }
  return { kind: 'did-web', did: id, url };
}

function certificates(id: string, files: readonly string[], at: string, problems: ProblemList): KeySource | undefined {
  const url = URL.canParse(id) ? new URL(id) : undefined;
  if (url?.protocol !== 'https:')
    problems.add(`${at}.id`, 'must be an https URL with x5cRoots: its host is what the certificates must be for');
  const roots = files.flatMap((file, index) => rootsOf(file, `${at}.x5cRoots[${index}]`, problems));
  return url === undefined ? undefined : { kind: 'x5c', host: url.hostname, roots };
}

class RootFileError extends Error {}

function rootsOf(file: string, path: string, problems: ProblemList): readonly X509Certificate[] {
  try {
    const text = readBoundedFile(file, MAX_ROOTS_BYTES, (message) => new RootFileError(`${file} ${message}`));
    const roots = pemCertificates(text).map((certificate) => new X509Certificate(certificate));
    if (roots.length === 0) problems.add(path, 'must be a file with certificates as PEM text');
    if (!roots.every(({ ca }) => ca)) problems.add(path, 'must have certificates of authorities only (CA: true)');
    return roots;
  } catch (error) {
    if (error instanceof RootFileError) problems.add(path, `must be a file that can be read: ${error.message}`);
    // The library's message may quote the certificate.
    else problems.add(path, 'must have certificates that can be read');
    return [];
  }
}
