/** Notes requests whose bodies are relayed: an answer that begins earlier must not end them. */

import type { IncomingMessage } from 'node:http';

const relayed = new WeakSet<IncomingMessage>();

/** From now on the body of this request is read beside its answer, at the pace of its receiver. */
export function noteBodyRelayed(req: IncomingMessage): void {
  relayed.add(req);
}

/** The relay ended before the body: what answers now is the gateway's own. */
export function noteRelayEnded(req: IncomingMessage): void {
  relayed.delete(req);
}

export function isBodyRelayed(req: IncomingMessage): boolean {
  return relayed.has(req);
}
