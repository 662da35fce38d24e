import { createHmac } from 'node:crypto';
import { canonicalJson } from '../json/canonical.ts';
import type { Json } from '../json/types.ts';
import type { KeyedCall } from './idempotency.ts';
import { OPERATION_RULES } from './operations.ts';

/**
 * What makes two bodies the same (acp 12.2): equal as JSON values, so the order of members and
 * `1.0` for `1` do not count, and null is not absence. Keyed, because a body of few possible values
 * could be guessed from a bare digest. Base64url HMAC-SHA256.
 */
export function fingerprintOf(secret: Uint8Array, body: Json): string {
  return createHmac('sha256', secret).update(canonicalJson(body)).digest('base64url');
}

/**
 * What a call is called in the store, and towards the merchant. All are base64url HMAC-SHA256, 43
 * characters.
 */
export interface CallNames {
  /**
   * Of the idempotency key: the same key of another client, on another operation or session is
   * another name (acp 12.1).
   */
  readonly record: string;
  /**
   * Of the session, whoever calls: two clients on one session exclude one another too. Undefined
   * without a session.
   */
  readonly session: string | undefined;
  /**
   * The merchant's own idempotency key: it depends on the record's name alone, so it outlives
   * retries, restarts and tokens.
   */
  readonly backendKey: string;
}

/** No part can hold it: keys are header values, ids are checked for control characters. */
const SEPARATOR = '\0';

/**
 * What a session and a client are called in the store where it is written down whose the session
 * is. Both go by the secret, so nobody without it finds an id or a client there.
 */
export function ownershipNamesOf(
  secret: Uint8Array,
  deploymentId: string,
  { clientId, sessionId }: { readonly clientId: string; readonly sessionId: string },
): { readonly session: string; readonly owner: string } {
  return {
    session: named(secret, 'session', deploymentId, sessionId),
    owner: named(secret, 'owner', deploymentId, sessionId, clientId),
  };
}

/**
 * Names a call. The operation and its path belong in here and not in the fingerprint: cancel bodies
 * are all alike, and a key that is used on another session asks for something else there. The
 * client goes by its configured id, never by its token.
 */
export function namesOf(
  secret: Uint8Array,
  deploymentId: string,
  { clientId, operation, sessionId, key }: Omit<KeyedCall, 'body'>,
): CallNames {
  const { path } = OPERATION_RULES[operation];
  const record = named(secret, 'idem', deploymentId, clientId, operation, path, sessionId ?? '', key);
  return {
    record,
    session: sessionId === undefined ? undefined : named(secret, 'lock', deploymentId, sessionId),
    backendKey: named(secret, 'merchant', record),
  };
}

function named(secret: Uint8Array, ...parts: readonly string[]): string {
  return createHmac('sha256', secret).update(parts.join(SEPARATOR)).digest('base64url');
}
