import type { CommerceEvent, EventDraft, EventPage, EventQuery } from '../events/event.ts';
import { type Older, sameFields, scanPage } from './page.ts';

/** Largest `data` of an event, bytes serialised (CONTRACT 6). */
export const MAX_EVENT_DATA_BYTES = 2_048;

/** An event as it is stored: without its id, which is its position. Data that is too large is left out, never cut. */
export function eventJson(event: EventDraft): string {
  const { data, ...rest } = event;
  if (data === undefined || Buffer.byteLength(JSON.stringify(data)) > MAX_EVENT_DATA_BYTES) return JSON.stringify(rest);
  return JSON.stringify(event);
}

/** Undefined for what is no event: one damaged entry must not close the whole feed. */
export function parseEvent(id: string, json: string): CommerceEvent | undefined {
  try {
    return { id, ...(JSON.parse(json) as EventDraft) };
  } catch {
    return undefined;
  }
}

/** A page of the feed over any store. */
export async function eventPage(query: EventQuery, older: Older<CommerceEvent>): Promise<EventPage> {
  const { limit, cursor, requestId, resourceId, type } = query;
  const matches = sameFields<CommerceEvent>({ requestId, resourceId, type });
  const { items, next } = await scanPage({ limit, cursor, matches }, older);
  return { events: items, ...(next === undefined ? {} : { nextCursor: next }) };
}
