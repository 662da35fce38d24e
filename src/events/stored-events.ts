/** What both stores share about the ring of events: an event's JSON, and a page over any store. */

import { calledAtMs } from './call-id.ts';
import type { CommerceEvent, EventDraft, EventPage, EventQuery } from './event.ts';
import { type Older, sameFields, scanPage } from './page.ts';
import { comparePositions } from './position.ts';

/** Largest `data` of an event, bytes serialised (contract 6). */
const MAX_EVENT_DATA_BYTES = 2_048;
/** How far the clocks of a gateway and of its store may differ, milliseconds. */
const MAX_CLOCK_DIFFERENCE_MS = 10 * 60 * 1_000;

/** An event as it is stored, without its id. Data that is too large is left out, never cut. */
export function eventJson(event: EventDraft): string {
  const whole = JSON.stringify(event);
  // A character is three bytes at most, so a short event needs no second look.
  if (event.data === undefined || 3 * whole.length <= MAX_EVENT_DATA_BYTES) return whole;
  if (Buffer.byteLength(JSON.stringify(event.data)) <= MAX_EVENT_DATA_BYTES) return whole;
  const { data: _, ...rest } = event;
  return JSON.stringify(rest);
}

/** Undefined for a damaged entry, so that it does not close the whole feed. */
export function parseEvent(id: string, json: string): CommerceEvent | undefined {
  try {
    return { id, ...(JSON.parse(json) as EventDraft) };
  } catch {
    return undefined;
  }
}

/** A page of the feed. The search for events of a call ends at the time at which it came in. */
export async function eventPage(query: EventQuery, older: Older<CommerceEvent>): Promise<EventPage> {
  const { limit, cursor, requestId, callId, resourceId, type } = query;
  const matches = sameFields<CommerceEvent>({ requestId, callId, resourceId, type });
  const floor = callId === undefined ? undefined : eventFloor(callId);
  const { items, next } = await scanPage({ limit, cursor, matches, floor }, older);
  return { events: items, ...(next === undefined ? {} : { nextCursor: next }) };
}

/** Whether an event is older than every event that this call can have. */
function eventFloor(callId: string): (id: string) => boolean {
  const floor = `evt_${Math.max(0, calledAtMs(callId) - MAX_CLOCK_DIFFERENCE_MS)}-0`;
  return (id) => comparePositions(id, floor) < 0;
}
