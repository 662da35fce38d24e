/** Recognises the client of a checkout call by its bearer token (acp 8). */

import type { IncomingMessage } from 'node:http';
import type { AcpClient } from '../../checkouts/settings.ts';
import { ownersOf, readHeader } from '../../server/http/headers.ts';
import { clientNetwork } from '../../server/rate-limit/client-address.ts';
import { countFailedAttempts, type Guesses } from '../../server/rate-limit/failed-attempts.ts';
import { AcpError, retryAfter } from './error.ts';

/** RFC 6750, 2.1, with exactly one space, and a token of at most 512 characters. */
const BEARER = /^Bearer ([!-~]{1,512})$/i;

/**
 * A client may have several tokens, so that one can follow another while calls are open. An address
 * with too many wrong tokens has to wait; a right token always passes, because clients and
 * attackers may share an address.
 * @throws AcpError unauthorized, rate_limited
 */
export function clientsByToken(clients: readonly AcpClient[], guesses: Guesses = {}): (req: IncomingMessage) => string {
  const { clientOf: addressOf = clientNetwork(0), wrongTries = countFailedAttempts(), onLimited } = guesses;
  const ownerOf = ownersOf(clients.flatMap(({ id, tokens }) => tokens.map((token) => ({ token, owner: id }))));
  return function clientOf(req) {
    const header = readHeader(req, 'authorization');
    const client = ownerOf(header.kind === 'single' ? BEARER.exec(header.value)?.[1] : undefined);
    if (client !== undefined) return client;
    // A call without a token is no guess.
    const waitS = header.kind === 'absent' ? undefined : wrongTries.note(addressOf(req));
    if (waitS !== undefined) {
      onLimited?.();
      throw new AcpError('rate_limited', { message: 'Too many wrong tokens.', headers: retryAfter(waitS) });
    }
    throw new AcpError('unauthorized', { headers: { 'www-authenticate': 'Bearer realm="acp"' } });
  };
}
