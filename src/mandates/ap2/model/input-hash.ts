import { hash } from 'node:crypto';
import { canonicalJson } from '../../../json/canonical.ts';
import type { JsonObject } from '../../../json/types.ts';

/** base64url of SHA-256 over the canonical form (RFC 8785) of an input without its reserved members (ap2 7.3). */
export function inputHash(input: JsonObject): string {
  return hash('sha256', canonicalJson(input), 'base64url');
}
