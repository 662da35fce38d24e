/** The types of hostile answers: what the backend does, and what the agent gets. */

import type { Socket } from 'node:net';
import type { BackendFailure } from '../../../src/backend/exchange.ts';
import type { Action } from './stage.ts';

/** Marks every text that must not reach the agent. */
export const CANARY = 'canary-4e1f';

/**
 * What an agent may see. `delivered`: the body, over every channel. `failed`: only a text of the
 * gateway. `cut`: over HTTP the head was sent already, so the connection breaks; in a message it is
 * reported as a failure.
 */
export type Outcome =
  | { readonly kind: 'delivered'; readonly body: string }
  | { readonly kind: 'failed'; readonly reason?: BackendFailure | 'redirect_not_followed'; readonly status?: number }
  | { readonly kind: 'cut'; readonly reason: BackendFailure };

/** One hostile answer of a backend. */
export interface HostileAnswer {
  readonly name: string;
  readonly action: Action;
  readonly outcome: Outcome;
}

export const OK = 'HTTP/1.1 200 OK\r\n';
export const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
export const HELLO = 'content-length: 5\r\n\r\nhello';
/** Between two bytes of a slow backend, milliseconds. */
const TRICKLE_MS = 10;

export const hello: Outcome = { kind: 'delivered', body: 'hello' };
export const broken: Outcome = { kind: 'failed', reason: 'transport' };
export const late: Outcome = { kind: 'failed', reason: 'timeout' };
export const cut: Outcome = { kind: 'cut', reason: 'transport' };
/** A failure of which only the status is reported. */
export const refusedStatus = (status: number): Outcome => ({ kind: 'failed', status });
export const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

/** Writes `piece` for ever, slowly. */
export function trickle(head: string, piece = 'x'): (socket: Socket) => void {
  return (socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write(piece), TRICKLE_MS);
    socket.once('close', () => clearInterval(timer));
  };
}

/** Writes `piece` for ever, as fast as it is read. */
export function flood(head: string, piece: string): (socket: Socket) => void {
  return (socket) => {
    socket.write(head);
    const more = (): void => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on('drain', more);
    more();
  };
}
export const ends = (bytes: string) => (socket: Socket) => void socket.end(bytes);
export const answer = (name: string, action: Action, outcome: Outcome): HostileAnswer => ({ name, action, outcome });
