/** Header values of the HTTP transport: JSON as standard base64 with padding (x402 2.1). */

const ALPHABET = /^[A-Za-z0-9+/]+={0,2}$/;

/** A document as a header value. */
export function encodeHeader(document: unknown): string {
  return encodeHeaderText(JSON.stringify(document));
}

/** A document that already is JSON text as a header value. */
export function encodeHeaderText(json: string): string {
  return Buffer.from(json, 'utf8').toString('base64');
}

/**
 * The bytes of a header value, or undefined when it is not base64 in its one canonical spelling (padding may be left out).
 * Node's decoder skips whatever it does not know, so the bytes are encoded again and compared.
 */
export function decodeHeader(value: string): Uint8Array | undefined {
  if (!ALPHABET.test(value)) return undefined;
  const bytes = Buffer.from(value, 'base64');
  const padded = bytes.toString('base64');
  return value === padded || value === padded.replace(/=+$/, '') ? bytes : undefined;
}
