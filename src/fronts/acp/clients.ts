import type { IncomingMessage } from 'node:http';
import type { AcpClient } from '../../checkouts/settings.ts';
import { ownersOf } from '../../http/bearer.ts';
import { readHeader } from '../../http/headers.ts';
import { AcpError } from './error.ts';

/** RFC 6750, 2.1, with exactly one space, and a token of at most 512 characters. */
const BEARER = /^Bearer ([!-~]{1,512})$/i;

/**
 * Who calls, by the bearer token (acp.md 2.1). A client may have several tokens, so that one can follow another while calls are open.
 * @throws AcpError unauthorized
 */
export function clientsByToken(clients: readonly AcpClient[]): (req: IncomingMessage) => string {
  const ownerOf = ownersOf(clients.flatMap(({ id, tokens }) => tokens.map((token) => ({ token, owner: id }))));
  return function clientOf(req) {
    const header = readHeader(req, 'authorization');
    const client = ownerOf(header.kind === 'single' ? BEARER.exec(header.value)?.[1] : undefined);
    if (client !== undefined) return client;
    throw new AcpError('unauthorized', { headers: { 'www-authenticate': 'Bearer realm="acp"' } });
  };
}
