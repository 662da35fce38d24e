/** Ends an answer whose body is there as a whole. */

import type { ServerResponse } from 'node:http';

/** The largest body that is copied into one piece with its head, bytes. */
export const COPIED_BYTES = 16_384;

/** A string goes out in one write with the head; more bytes are cheaper than a copy of them. */
export function endWith(res: ServerResponse, bytes: Uint8Array): void {
  if (bytes.byteLength > COPIED_BYTES) res.end(bytes);
  else res.end(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1'), 'latin1');
}
