/** Makes and signs the tokens of test mandates: disclosures, SD-JWTs, chains and envelopes. */

import { createHash, randomBytes } from 'node:crypto';
import type { Json, JsonObject } from '../../../src/json/json.ts';

/** The signer of a token: a provider, a user, an agent. */
export interface Signer {
  /** Its public half; `kid` and `alg` go into the head of a token. */
  readonly publicJwk: { readonly kid: string; readonly alg: string };
  /** The signature over the UTF-8 of a text, base64url. */
  sign(text: string): string;
}

/** A value apart from its token (RFC 9901, section 4.2), and the digest that stands for it. */
export interface Disclosure {
  readonly text: string;
  readonly digest: string;
}

/** A token before it is signed. */
export interface Draft {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly disclosures: readonly Disclosure[];
}

/** 128 random bits, as RFC 9901 recommends. */
const SALT_BYTES = 16;

export function base64url(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url');
}

/** base64url of SHA-256 over ASCII: digests, `sd_hash`, `checkout_hash`, identities. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text, 'ascii').digest('base64url');
}

function newSalt(): string {
  return randomBytes(SALT_BYTES).toString('base64url');
}

/** An element of an array; `{"...": digest}` stands for it. */
export function discloseElement(value: Json): Disclosure {
  return disclosureOf([newSalt(), value]);
}

/** A member of an object; its digest stands in `_sd`. */
export function discloseMember(name: string, value: Json): Disclosure {
  return disclosureOf([newSalt(), name, value]);
}

/** Any JSON as a disclosure, right or wrong. */
export function disclosureOf(value: Json): Disclosure {
  const text = base64url(JSON.stringify(value));
  return { text, digest: hashOf(text) };
}

/** What stands in an array instead of a disclosed element. */
export function placeholder({ digest }: Disclosure): JsonObject {
  return { '...': digest };
}

/** A compact JWS (RFC 7515, section 7.1). */
export function signJwt(header: JsonObject, claims: JsonObject, signer: Pick<Signer, 'sign'>): string {
  const input = `${base64url(JSON.stringify(header))}.${base64url(JSON.stringify(claims))}`;
  return `${input}.${signer.sign(input)}`;
}

/** Signs an SD-JWT with its disclosures, `~` at its end. */
export function signDraft({ header, claims, disclosures }: Draft, signer: Pick<Signer, 'sign'>): string {
  return sdJwt(
    signJwt(header, claims, signer),
    disclosures.map(({ text }) => text),
  );
}

export function sdJwt(jwt: string, disclosures: readonly string[]): string {
  return [jwt, ...disclosures, ''].join('~');
}

/** A delegate chain: segments joined by `~~`, of which one `~` ends the segment before (ap2 3). */
export function chainOf(segments: readonly string[]): string {
  return segments.map((segment, at) => (at === segments.length - 1 ? segment : segment.slice(0, -1))).join('~~');
}

/** The value of `Agent-Authorization` (ap2 7.2). */
export function headerOf(envelope: Json): string {
  return base64url(JSON.stringify(envelope));
}

/** The envelope of a checkout mandate, and of the payment mandate that goes with it. */
export function envelopeOf(payload: string, paymentMandate?: string): JsonObject {
  const envelope = { method: 'ap2', version: '0.2', payload };
  return paymentMandate === undefined ? envelope : { ...envelope, payment_mandate: paymentMandate };
}
