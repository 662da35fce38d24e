/**
 * Compact JWS (RFC 7515): base64url, reading and opening the tokens of a chain, and signing the
 * gateway's own.
 */

import type { SigningKey } from '../../../crypto/signing-key.ts';
import { JsonError, parseStrictJson } from '../../../json/strict.ts';
import { isObject, type Json, type JsonObject } from '../../../json/types.ts';
import { Refused } from '../model/reasons.ts';

/** Deepest nesting of the parts of a token, and of one disclosure (ap2 7.6, step 5). */
export const MAX_TOKEN_DEPTH = 16;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const SPELLING = /^[A-Za-z0-9_-]*$/;

/** Where in a chain a token stands; its `typ` must agree (ap2 3). */
type Position = 'root' | 'handed_on' | 'closing';

/** Roots as used in practice, and hops in the spelling of the SDK and of the draft. */
const TYPES: Readonly<Record<Position, ReadonlySet<unknown>>> = {
  root: new Set(['dc+sd-jwt', 'vc+sd-jwt', 'sd+jwt', 'example+sd-jwt']),
  handed_on: new Set(['kb+sd-jwt+kb', 'kb-sd-jwt+kb']),
  closing: new Set(['kb+sd-jwt', 'kb-sd-jwt']),
};

/** A compact JWS taken apart. Nothing of it is verified yet. */
export interface Token {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly signature: Buffer;
  /** `header.payload`: what was signed, and what the token is known by. */
  readonly signingInput: string;
}

/** `mandate_malformed`: no token; `claims_invalid`: a token with a number that is not exact. */
type TokenReading =
  | { readonly ok: true; readonly token: Token }
  | { readonly ok: false; readonly reason: 'mandate_malformed' | 'claims_invalid' };

/** `inexact`: JSON with a number that a double cannot hold. */
type JsonReading = { readonly kind: 'read'; readonly value: Json } | { readonly kind: 'inexact' | 'illegible' };

/**
 * Opens the token of a segment (ap2 7.6, step 5). Keys in the header (`jwk`, `jku`, `x5u`) are
 * ignored.
 * @throws Refused
 */
export function openToken(jwt: string, position: Position, algorithms: ReadonlySet<unknown>): Token {
  const reading = readToken(jwt);
  if (!reading.ok) throw new Refused(reading.reason);
  const { alg, typ, crit, b64 } = reading.token.header;
  // RFC 7515, section 4.1.11: unknown extensions are refused. None is known here, and `b64` would
  // change what was signed.
  if (crit !== undefined || b64 !== undefined) throw new Refused('unsupported_algorithm');
  if (!algorithms.has(alg)) throw new Refused('unsupported_algorithm');
  if (!TYPES[position].has(typ)) throw new Refused('unexpected_typ');
  return reading.token;
}

/** Takes a compact JWS apart: three parts of base64url, the first two strict JSON objects. */
export function readToken(jwt: string): TokenReading {
  const parts = jwt.split('.', 4);
  const [head = '', payload = ''] = parts;
  const [headBytes, payloadBytes, signature] = parts.map(decodeBase64url);
  if (parts.length !== 3 || signature === undefined) return { ok: false, reason: 'mandate_malformed' };
  const header = readTokenJson(headBytes);
  const claims = readTokenJson(payloadBytes);
  if (header.kind === 'inexact' || claims.kind === 'inexact') return { ok: false, reason: 'claims_invalid' };
  if (header.kind !== 'read' || !isObject(header.value) || claims.kind !== 'read' || !isObject(claims.value))
    return { ok: false, reason: 'mandate_malformed' };
  return {
    ok: true,
    token: { header: header.value, claims: claims.value, signature, signingInput: `${head}.${payload}` },
  };
}

/** Strict JSON of a token or of a disclosure. */
export function readTokenJson(bytes: Uint8Array | undefined): JsonReading {
  if (bytes === undefined) return { kind: 'illegible' };
  try {
    return { kind: 'read', value: parseStrictJson(bytes, MAX_TOKEN_DEPTH) };
  } catch (error) {
    return { kind: error instanceof JsonError && error.reason === 'number_out_of_range' ? 'inexact' : 'illegible' };
  }
}

/**
 * Reads the one spelling that base64url has for some bytes (RFC 4648, section 5, without padding).
 * `Buffer.from` also accepts padding, line breaks, the other alphabet, odd lengths and nonzero
 * spare bits, so that one token would have many names (ap2 7.6, step 2). Undefined for those.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const rest = text.length % 4;
  if (rest === 1 || !SPELLING.test(text)) return undefined;
  if (rest !== 0) {
    const unused = rest === 2 ? 0b1111 : 0b11;
    if ((ALPHABET.indexOf(text.charAt(text.length - 1)) & unused) !== 0) return undefined;
  }
  return Buffer.from(text, 'base64url');
}

/** Signs claims as compact JWS of one `typ`. */
export function createCompactSigner(typ: string, key: SigningKey): (claims: JsonObject) => string {
  const { alg, kid } = key.publicJwk;
  const head = encoded(JSON.stringify({ alg, typ, kid }));
  return function signed(claims) {
    const input = `${head}.${encoded(JSON.stringify(claims))}`;
    return `${input}.${key.sign(input)}`;
  };
}

function encoded(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url');
}
