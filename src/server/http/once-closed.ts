/** Notices the end of a response, also of one that has ended already. */

import type { ServerResponse } from 'node:http';

/**
 * Calls `ended` once the response is closed, and at once where it is closed already: a client that
 * left while its request was read has no `close` event to come.
 */
export function onceClosed(res: ServerResponse, ended: () => void): void {
  if (res.closed || res.destroyed) ended();
  else res.once('close', ended);
}
