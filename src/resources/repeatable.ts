/** Which operations of a merchant may be asked for twice. */

import type { BackendRequest } from '../backend/exchange.ts';

/** Methods whose repetition does no harm (RFC 9110, 9.2.2). */
const METHODS: ReadonlySet<BackendRequest['method']> = new Set(['GET', 'PUT', 'DELETE']);

/**
 * Whether the same request may be sent twice (contract 4.3, "undelivered"). `idempotent`: the
 * merchant says so of this operation, whatever its method.
 */
export function isRepeatable({
  method,
  idempotent,
}: {
  readonly method: BackendRequest['method'];
  readonly idempotent: boolean;
}): boolean {
  return idempotent || METHODS.has(method);
}
