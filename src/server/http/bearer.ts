import { createHash, timingSafeEqual } from 'node:crypto';

/** A bearer token that is accepted, and whose it is. */
interface KnownToken<Owner> {
  readonly token: string;
  readonly owner: Owner;
}

/**
 * Whose token it is; undefined for none and for an unknown one. Tokens are compared as digests, in constant time, with every known one.
 */
export function ownersOf<Owner>(known: readonly KnownToken<Owner>[]): (token: string | undefined) => Owner | undefined {
  const digests = known.map(({ token, owner }) => ({ expected: digest(token), owner }));
  return function ownerOf(token) {
    const presented = digest(token ?? '');
    let found: Owner | undefined;
    // No early exit: the time must not tell which of the tokens came close.
    for (const { expected, owner } of digests) found = timingSafeEqual(presented, expected) ? owner : found;
    return token === undefined ? undefined : found;
  };
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
