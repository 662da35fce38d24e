/** Notes requests whose bodies are relayed: an answer that begins earlier must not end them. */

import type { IncomingMessage } from 'node:http';

/** On the request itself: a weak table of them costs more in collections than all that is noted. */
const RELAYED = Symbol('its body is relayed');

interface Noted extends IncomingMessage {
  [RELAYED]?: boolean;
}

/** From now on the body of this request is read beside its answer, at the pace of its receiver. */
export function noteBodyRelayed(req: Noted): void {
  req[RELAYED] = true;
}

/** The relay ended before the body: what answers now is the gateway's own. */
export function noteRelayEnded(req: Noted): void {
  req[RELAYED] = false;
}

export function isBodyRelayed(req: Noted): boolean {
  return req[RELAYED] === true;
}
