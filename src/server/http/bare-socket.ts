/** Answers on sockets that have no response object: after a broken head, and of upgrades. */

import http from 'node:http';
import type { Duplex } from 'node:stream';
import { errorEnvelope, type GatewayError } from '../../errors.ts';

/** How long a connection outlasts its last answer, for an upload or a late close, milliseconds. */
export const LINGER_MS = 1_000;

/** Writes the one envelope, and ends the connection. Node no longer watches such a socket. */
export function answerOnSocket(socket: Duplex, refusal: GatewayError, requestId: string): void {
  const body = JSON.stringify(errorEnvelope(refusal, requestId));
  const head = [
    `HTTP/1.1 ${refusal.status} ${http.STATUS_CODES[refusal.status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    ...Object.entries(refusal.headers).map(([name, value]) => `${name}: ${value}`),
    'cache-control: no-store',
    'x-content-type-options: nosniff',
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  const lingers = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(lingers));
}
