/**
 * The address of a sale in place in documents of x402: its spelling, the addresses of one resource,
 * and the PaymentRequired document, in which it differs from call to call.
 */

import { type Fits, type FormOfTerms, TOKEN_GAP } from './payment-required.ts';

/** Longest address in a document; behind it the invoke URL names the resource, bytes. */
const MAX_URL_BYTES = 1_024;
const OPENING = '{"x402Version":2,"resource":{"url":';
/** An escape, or a character that a path has only as an escape (RFC 3986, 3.3). */
const ESCAPED = /%[0-9a-f]{2}|[^A-Za-z0-9\-._~!$&'()*+,;=:@/%]/gi;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;

/**
 * The URL that a challenge at the backend's own address names: two spellings of one path have the
 * same. Made of configuration and path alone, because the Host header is the caller's. Undefined:
 * it is too long for a challenge.
 */
export function inPlaceUrl(publicBaseUrl: string, path: string): string | undefined {
  const url = publicBaseUrl + normalPath(path);
  return url.length > MAX_URL_BYTES ? undefined : url;
}

/** Upper-case escapes, and none for unreserved characters (RFC 3986, 6.2.2). */
function normalPath(path: string): string {
  return path.replace(ESCAPED, (found) => {
    if (!found.startsWith('%')) return encodeURIComponent(found);
    const character = String.fromCharCode(Number.parseInt(found.slice(1), 16));
    return UNRESERVED.test(character) ? character : found.toUpperCase();
  });
}

/**
 * The URLs that challenges of one resource have in place. Their parameters may hold anything: what
 * is bought is bound by the input, never by a URL.
 * @param address a URL with `{param}`s
 */
export function inPlaceUrls(address: string): RegExp {
  const literals = address.split(/\{[^{}]*\}/).map((literal) => RegExp.escape(normalPath(literal)));
  return new RegExp(`^${literals.join('[^/?#]*')}$`);
}

/** Makes a document for one URL and token. Undefined: none fits. */
type DocumentAt = (
  url: string,
  token: string,
  fits: Fits,
) => { readonly text: string; readonly leftOut: readonly string[] } | undefined;

/** Splits documents at their URL and token; the first that fits is used. */
export function documentsAt(documents: readonly FormOfTerms[]): DocumentAt {
  const forms = documents.map(splitAtUrl);
  return (url, token, fits) => {
    const found = forms.find(({ bytes }) => fits(bytes + url.length));
    return found && { text: found.document(url, token), leftOut: found.leftOut };
  };
}

/** A document with gaps for URL and token. `bytes`: of all but the URL. */
function splitAtUrl({ required, leftOut }: FormOfTerms): {
  readonly bytes: number;
  readonly leftOut: readonly string[];
  document(url: string, token: string): string;
} {
  const text = JSON.stringify(required);
  const url = JSON.stringify(required.resource.url);
  const at = text.lastIndexOf(TOKEN_GAP);
  if (!text.startsWith(OPENING + url) || at < 0)
    throw new Error('PaymentRequired must begin with its URL and have a gap for a token');
  const before = text.slice(OPENING.length + url.length, at);
  const after = text.slice(at + TOKEN_GAP.length);
  return {
    leftOut,
    bytes: Buffer.byteLength(text) - Buffer.byteLength(required.resource.url),
    document: (other, token) => `${OPENING}${JSON.stringify(other)}${before}${token}${after}`,
  };
}
