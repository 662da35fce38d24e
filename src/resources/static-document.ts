/** Published documents whose bytes are made once, with a strong ETag. */

import { createHash } from 'node:crypto';

export interface StaticDocument {
  readonly bytes: Uint8Array;
  /** Quoted, as in the header. */
  readonly etag: string;
}

/** Characters of the base64url SHA-256 in an ETag: 162 bits. */
const ETAG_LENGTH = 27;

export function staticDocument(document: unknown): StaticDocument {
  return staticText(JSON.stringify(document));
}

/** Equal ETags mean equal bytes, on every replica and after every restart. */
export function staticText(text: string): StaticDocument {
  const bytes = Buffer.from(text, 'utf8');
  const digest = createHash('sha256').update(bytes).digest('base64url');
  return { bytes, etag: `"${digest.slice(0, ETAG_LENGTH)}"` };
}
