import { setTimeout as delay } from 'node:timers/promises';
import type { EventFeed, EventStretch } from '../../events/event.ts';
import { framesOf } from './stream-frames.ts';
import { READ_ENTRIES, type StreamHub } from './stream-hub.ts';
import type { StreamReader } from './stream-reader.ts';

/** Entries written at once: a slow line gets 30 s for each such portion, a few dozen KiB. */
const PORTION_ENTRIES = 50;
/** Before asking again for an event that the hub knows and the ring did not show yet, milliseconds. */
const AGAIN_MS = 20;

/**
 * Gives a reader all that the ring still has after `from`, page by page as he takes it, and joins him to the live events with nothing
 * lost and nothing doubled. `first` is the first page, read already. Rejects when the store does; what was written stays right, so the
 * reader can resume from it.
 */
export async function replay(
  reader: StreamReader,
  from: string,
  first: EventStretch,
  { feed, hub }: { readonly feed: EventFeed; readonly hub: StreamHub },
): Promise<void> {
  let position = from;
  // A caller may have made his position up; one that was read here can only be missing when the ring lost it.
  let seen = false;
  for (let page = first; !reader.gone; page = await feed.after(position, READ_ENTRIES)) {
    const { entries, standing } = page;
    const lost = standing === 'dropped' || standing === 'ahead' || (standing === 'unknown' && seen);
    if (lost) reader.gap();
    const last = entries.at(-1);
    if (last === undefined && lost) {
      hub.join(reader);
      return;
    }
    // From the question to the writing nothing may be waited for: the hub would be further again.
    if (hub.join(reader, last?.id ?? position)) {
      const frames = framesOf(entries);
      if (frames !== undefined) reader.take(frames);
      return;
    }
    if (last === undefined) {
      await delay(AGAIN_MS, undefined, { ref: false });
      continue;
    }
    for (let at = 0; at < entries.length && !reader.gone; at += PORTION_ENTRIES) {
      const frames = framesOf(entries.slice(at, at + PORTION_ENTRIES));
      if (frames !== undefined) await reader.send(frames);
    }
    position = last.id;
    seen = true;
  }
}
