/** Follows the events of a gateway over outages, without losing or repeating one. */

import { setTimeout as delay } from 'node:timers/promises';
import { BEGINNING } from '../events/position.ts';
import { isObject, type Json } from '../json/types.ts';
import { framesOf } from './event-frames.ts';
import { UnavailableError } from './exit-code.ts';
import type { GatewayClient } from './gateway-client.ts';
import { readList } from './read-list.ts';

/** Until the stream says otherwise, milliseconds. */
const RETRY_MS = 2_000;

/** An event as a gateway sends it; of a gateway of another release only the id is certain. */
interface FollowedEvent {
  readonly id: string;
}

interface Following<Event> {
  /** The next one is read when it is done with this. */
  readonly take: (event: Event) => Promise<void>;
  /** Told once when the stream breaks, when it goes on, and when events are missing. */
  readonly note: (text: string) => void;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** The id of the newest event, before which nothing is followed. Throws what the client throws. */
export async function newestPosition(client: GatewayClient): Promise<string> {
  const { entries } = await readList<FollowedEvent>(client, { path: '/api/events', query: {}, limit: 1 });
  return entries[0]?.id ?? BEGINNING;
}

/**
 * Takes every event behind `position`, until the signal. Each connection resumes behind the last
 * event that was taken.
 * @throws UnavailableError when the first connection fails; Error when a token is refused
 */
export async function followEvents<Event extends FollowedEvent>(
  client: GatewayClient,
  position: string,
  { take, note, signal }: Following<Event>,
): Promise<void> {
  let last = position;
  let retryMs = RETRY_MS;
  let standing: 'new' | 'open' | 'broken' = 'new';
  while (!signal.aborted) {
    let why = 'the stream ended';
    try {
      const response = await client.stream(last, signal);
      if (standing === 'broken') note('connected again');
      standing = 'open';
      for await (const frame of framesOf(response)) {
        if (frame.kind === 'retry') ({ retryMs } = frame);
        else if (frame.kind === 'comment') {
          if (frame.text === 'gap')
            note(`gap: the gateway no longer has all events after ${last}; some are missing here`);
          if (frame.text === 'draining') why = 'the gateway ends';
        } else {
          const event = eventOf<Event>(frame.data);
          if (event === undefined) continue;
          last = event.id;
          await take(event);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (standing === 'new' || (standing === 'broken' && !(error instanceof UnavailableError))) throw error;
      why = brokenBy(error);
    }
    if (standing === 'open') note(`${why}; connecting again`);
    standing = 'broken';
    await delay(retryMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Node names neither the end of a connection nor who ended it. */
function brokenBy(error: unknown): string {
  const { code, message } = (error instanceof Error ? error : new Error(String(error))) as NodeJS.ErrnoException;
  return code === 'ECONNRESET' ? 'the connection broke' : message;
}

function eventOf<Event extends FollowedEvent>(data: string): Event | undefined {
  try {
    const event = JSON.parse(data) as Json;
    return isObject(event) && typeof event['id'] === 'string' ? (event as unknown as Event) : undefined;
  } catch {
    return undefined;
  }
}
