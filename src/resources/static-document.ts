import { createHash } from 'node:crypto';
import type { StaticDocument } from './resource.ts';

/** Characters of the base64url SHA-256 in an ETag: 162 bits. */
const ETAG_LENGTH = 27;

/** A JSON document as bytes with a strong ETag. */
export function staticDocument(document: unknown): StaticDocument {
  return staticText(JSON.stringify(document));
}

/**
 * A text as bytes with a strong ETag: equal tags mean equal bytes, on every replica and after every
 * restart.
 */
export function staticText(text: string): StaticDocument {
  const bytes = Buffer.from(text, 'utf8');
  const digest = createHash('sha256').update(bytes).digest('base64url');
  return { bytes, etag: `"${digest.slice(0, ETAG_LENGTH)}"` };
}
