import { JsonError, parseStrictJson } from '../../../json/strict.ts';
import type { Json } from '../../../json/types.ts';
import { decodeHeader, encodeHeader } from './header-codec.ts';
import { type DecodedProof, readPaymentPayload } from './payload-schema.ts';
import type { PaymentPayload } from './types.ts';

/** Longest PAYMENT-SIGNATURE value that is read, bytes (contract 3). */
export const MAX_PROOF_BYTES = 8_192;

/** Reads a PAYMENT-SIGNATURE value: size, strict base64, strict JSON, schema, in this order (contract 4.2, step 1). */
export function decodeProof(header: string): DecodedProof {
  // Characters outside base64 are refused below, so characters are bytes here.
  const bytes = header.length > MAX_PROOF_BYTES ? undefined : decodeHeader(header);
  const document = bytes === undefined ? undefined : parse(bytes);
  return document === undefined ? { kind: 'unreadable', reason: 'invalid_payload' } : readPaymentPayload(document);
}

/** A payload that a channel carries as an object (MCP, A2A), as the header value that `decodeProof` reads. */
export function encodeProof(payload: Json | PaymentPayload): string {
  return encodeHeader(payload);
}

function parse(bytes: Uint8Array): Json | undefined {
  try {
    return parseStrictJson(bytes);
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}
