/** Header values of the HTTP transport: JSON as standard base64 with padding (x402 2.1). */

import { readStrictJson } from '../../../json/strict.ts';
import type { Json } from '../../../json/types.ts';
import { type DecodedProof, readPaymentPayload } from './payload-schema.ts';
import type { PaymentPayload } from './types.ts';

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
 * The bytes of a header value; undefined when it is not base64 in its canonical spelling (padding
 * may be left out). Node's decoder skips what it does not know, so the bytes are encoded again and
 * compared.
 */
export function decodeHeader(value: string): Uint8Array | undefined {
  if (!ALPHABET.test(value)) return undefined;
  const bytes = Buffer.from(value, 'base64');
  const padded = bytes.toString('base64');
  return value === padded || value === padded.replace(/=+$/, '') ? bytes : undefined;
}

/** Longest PAYMENT-SIGNATURE value that is read, bytes (contract 3). */
export const MAX_PROOF_BYTES = 8_192;

/** Reads a PAYMENT-SIGNATURE: size, strict base64, strict JSON, schema (contract 4.2, step 1). */
export function decodeProof(header: string): DecodedProof {
  const unreadable = (fault: string): DecodedProof => ({ kind: 'unreadable', reason: 'invalid_payload', fault });
  // Characters outside base64 are refused below, so characters are bytes here.
  if (header.length > MAX_PROOF_BYTES) return unreadable(`it must have at most ${MAX_PROOF_BYTES} bytes`);
  const bytes = decodeHeader(header);
  if (bytes === undefined)
    return unreadable(
      header.trimStart().startsWith('{')
        ? 'it must be the base64 of its JSON, not the JSON itself'
        : 'it must be standard base64, with A-Z, a-z, 0-9, + and /',
    );
  const document = readStrictJson(bytes);
  if (document === undefined) return unreadable('its base64 must hold one JSON object, without a name twice');
  return readPaymentPayload(document);
}

/** A payload that MCP or A2A carries as an object, as the header that `decodeProof` reads. */
export function encodeProof(payload: Json | PaymentPayload): string {
  return encodeHeader(payload);
}
