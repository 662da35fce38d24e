import type { EventEntry } from '../../events/event.ts';

/** How long a client waits before it connects again, milliseconds (contract 6). */
const RETRY_MS = 2_000;

/** What every stream begins with (specification 6). */
export const CONNECTED = comment('connected', `retry: ${RETRY_MS}\n\n`);
export const HEARTBEAT = comment('heartbeat');
/** Events were dropped before the reader could have them. */
export const GAP = comment('gap');
/** The last words of a process that ends: another one goes on. */
export const DRAINING = comment('draining');

/** The frames of what can be read among the entries, in one piece; undefined for nothing. Unnamed, so that they are messages. */
export function framesOf(entries: readonly EventEntry[]): Buffer | undefined {
  let frames = '';
  for (const { id, event } of entries)
    if (event !== undefined) frames += `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`;
  return frames === '' ? undefined : Buffer.from(frames);
}

function comment(text: string, more = ''): Buffer {
  return Buffer.from(`: ${text}\n\n${more}`);
}
