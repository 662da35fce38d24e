/** Reads single headers and bearer tokens, for adapters, operators and the body reader. */

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Whether a `content-encoding` changes the bytes; `identity` does not (RFC 9110, 8.4). */
export function isEncoded(contentEncoding: string | readonly string[] | undefined): boolean {
  return contentEncoding !== undefined && String(contentEncoding).toLowerCase() !== 'identity';
}

const JSON_TYPE = /^(?:application\/json|[\w.-]+\/[\w.+-]+\+json)\s*(?:;|$)/i;

/** Whether a media type, with or without parameters, is `application/json` or a `+json` type. */
export function isJsonType(mediaType: string): boolean {
  return JSON_TYPE.test(mediaType);
}

/** A bearer token that is accepted, and its owner. */
interface KnownToken<Owner> {
  readonly token: string;
  readonly owner: Owner;
}

/**
 * Finds the owner of a token; undefined for none and for an unknown one. Tokens are compared as
 * digests, in constant time, with every known one.
 */
export function ownersOf<Owner>(known: readonly KnownToken<Owner>[]): (token: string | undefined) => Owner | undefined {
  const digests = known.map(({ token, owner }) => ({ expected: digest(token), owner }));
  return function ownerOf(token) {
    const presented = digest(token ?? '');
    let found: Owner | undefined;
    // No early exit: the time must not show which token matched.
    for (const { expected, owner } of digests) found = timingSafeEqual(presented, expected) ? owner : found;
    return token === undefined ? undefined : found;
  };
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** A header as it was sent. Node joins most repeated ones with a comma, which is not one value. */
export type HeaderReading =
  | { readonly kind: 'absent' }
  | { readonly kind: 'single'; readonly value: string }
  | { readonly kind: 'repeated' };

/** Reads one header by its lower-case name from the raw list. */
export function readHeader(req: IncomingMessage, name: string): HeaderReading {
  const joined = req.headers[name];
  if (joined === undefined) return { kind: 'absent' };
  let value: string | undefined;
  const raw = req.rawHeaders;
  for (let at = 0; at < raw.length; at += 2) {
    const given = raw[at];
    // The length alone rules most headers out.
    if (given?.length !== name.length || given.toLowerCase() !== name) continue;
    if (value !== undefined) return { kind: 'repeated' };
    value = raw[at + 1] ?? '';
  }
  return value === undefined ? { kind: 'absent' } : { kind: 'single', value };
}

/** The value of a header that came exactly once. */
export function singleHeader(req: IncomingMessage, name: string): string | undefined {
  const reading = readHeader(req, name);
  return reading.kind === 'single' ? reading.value : undefined;
}

const TRAILERS = /(?:^|,)\s*trailers\s*(?:,|$)/i;

/** Whether a caller reads what stands behind a body (RFC 9110 10.1.4). */
export function takesTrailers({
  headers,
  httpVersionMinor,
}: Pick<IncomingMessage, 'headers' | 'httpVersionMinor'>): boolean {
  // HTTP/1.0 has no bodies in chunks.
  return headers.te !== undefined && httpVersionMinor > 0 && TRAILERS.test(String(headers.te));
}
