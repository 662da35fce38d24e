/**
 * The names of keyed calls, sessions and clients in the store and towards the backend. All are
 * base64url HMAC-SHA256 under the operator's secret, 43 characters, so they reveal nothing.
 */

import { createHmac } from 'node:crypto';
import type { Json } from '../json/json.ts';
import { canonicalJson } from '../json/json.ts';
import type { KeyedCall } from './attempts.ts';
import { OPERATION_RULES } from './operations.ts';

/** No part can hold it: keys are header values, ids are checked for control characters. */
const SEPARATOR = '\0';

/** The names of a call. */
export interface CallNames {
  /** Of the idempotency key; another one for another client, operation or session (acp 12.1). */
  readonly record: string;
  /**
   * Of the session, for every client: two clients exclude one another too. Undefined without one.
   */
  readonly session: string | undefined;
  /**
   * The backend's idempotency key: it depends on the record's name alone, so it outlives retries,
   * restarts and tokens.
   */
  readonly backendKey: string;
}

/**
 * The operation and its path belong to the name and not to the fingerprint: all cancel bodies are
 * alike, and a key on another session asks for something else. A client is its configured id, never
 * its token.
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

/** The names of a session and of its owner, where the store holds whose the session is. */
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
 * A digest that is equal for the same bodies (acp 12.2): those equal as JSON values, so the order
 * of members and `1.0` for `1` do not count, and null is not absence. It is keyed, because a body
 * of few possible values could be guessed from a bare digest.
 */
export function fingerprintOf(secret: Uint8Array, body: Json): string {
  return createHmac('sha256', secret).update(canonicalJson(body)).digest('base64url');
}

function named(secret: Uint8Array, ...parts: readonly string[]): string {
  return createHmac('sha256', secret).update(parts.join(SEPARATOR)).digest('base64url');
}
