import { isObject } from '../../../json/object.ts';
import { JsonError, parseStrictJson } from '../../../json/strict.ts';
import type { Json, JsonObject } from '../../../json/types.ts';
import { decodeBase64url } from './base64url.ts';

/** Deepest nesting of the parts of a token, and of one disclosure (ap2 7.6, step 5). */
export const MAX_TOKEN_DEPTH = 16;

/** A compact JWS (RFC 7515, section 7.1) taken apart. Nothing of it is believed yet. */
export interface Token {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly signature: Buffer;
  /** `header.payload`: what was signed, and what the token is known by. */
  readonly signingInput: string;
}

/** `mandate_malformed`: no token at all; `claims_invalid`: one with a number that is not exact, which no claim may be. */
type TokenReading =
  | { readonly ok: true; readonly token: Token }
  | { readonly ok: false; readonly reason: 'mandate_malformed' | 'claims_invalid' };

/** `inexact`: JSON with a number that a double cannot hold. */
type JsonReading = { readonly kind: 'read'; readonly value: Json } | { readonly kind: 'inexact' | 'illegible' };

/** Takes a compact JWS apart: three parts in their one spelling, the first two JSON objects read the strict way. */
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

/** JSON of a token or of a disclosure, read the strict way; no bytes are no JSON. */
export function readTokenJson(bytes: Uint8Array | undefined): JsonReading {
  if (bytes === undefined) return { kind: 'illegible' };
  try {
    return { kind: 'read', value: parseStrictJson(bytes, MAX_TOKEN_DEPTH) };
  } catch (error) {
    return { kind: error instanceof JsonError && error.reason === 'number_out_of_range' ? 'inexact' : 'illegible' };
  }
}
