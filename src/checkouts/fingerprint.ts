import { createHmac } from 'node:crypto';
import { canonicalJson } from '../json/canonical.ts';
import type { Json } from '../json/types.ts';

/**
 * What makes two bodies the same (acp 12.2): equal as JSON values, so the order of members and `1.0` for `1` do not count, and null is
 * not absence. Keyed, because a body of few possible values could be guessed from a bare digest. Base64url HMAC-SHA256.
 */
export function fingerprintOf(secret: Uint8Array, body: Json): string {
  return createHmac('sha256', secret).update(canonicalJson(body)).digest('base64url');
}
