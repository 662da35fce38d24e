/** The events of the audit trail, the ids of calls, and the port of the ring of all replicas. */

import { randomFillSync } from 'node:crypto';
import type { JsonObject } from '../json/json.ts';

/** The event vocabulary of the interface specification, part 6. */
export const EVENT_TYPES = [
  'resource.discovered',
  'resource.requested',
  'authorization.verified',
  'authorization.rejected',
  'payment.required',
  'payment.rejected',
  'payment.verified',
  'payment.settled',
  'backend.called',
  'backend.failed',
  'resource.delivered',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** The protocol of a call; in events `adapter`, in receipts `protocol`. */
export type Protocol = 'http' | 'mcp' | 'a2a' | 'acp';

/** How a call came: by an adapter of its own, or to the backend's own address, over HTTP. */
export type Channel = Protocol | 'origin';

/** The protocol that a channel speaks. */
export function protocolOf(channel: Channel): Protocol {
  return channel === 'origin' ? 'http' : channel;
}

/** An event before the feed gave it a position (contract 6). */
export interface EventDraft {
  readonly type: EventType;
  readonly requestId: string;
  /** The gateway's own name of the call (`newCallId`). */
  readonly callId: string;
  readonly resourceId: string;
  /** ISO 8601, when it happened. */
  readonly at: string;
  readonly adapter?: Protocol;
  readonly paymentProvider?: 'x402';
  readonly durationMs?: number;
  readonly status?: 'ok' | 'error';
  /** At most 2,048 bytes serialised; larger data is left out by the feed, never cut. */
  readonly data?: JsonObject;
}

/** An event as operators read it: `id` is `evt_<ms>-<seq>`, its position in the feed. */
export interface CommerceEvent extends EventDraft {
  readonly id: string;
}

/** Newest first. `cursor` is an event id: only older events are returned. */
export interface EventQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly requestId?: string;
  readonly callId?: string;
  readonly resourceId?: string;
  readonly type?: string;
}

export interface EventPage {
  readonly events: readonly CommerceEvent[];
  /** Present when older events remain. */
  readonly nextCursor?: string;
}

/** Names a batch, so that a store recognises one whose reply was lost. */
export interface EventBatch {
  /** Random, one for each queue of each process. */
  readonly queue: string;
  /** Grows with each batch of the queue. */
  readonly sequence: number;
}

/** The ring of events. Those of payment transitions are written with the transition, not here. */
export interface EventFeed {
  /**
   * Appends in order, in one write. Rejects when the store does. With `batch` a repeated append
   * changes nothing.
   */
  append(events: readonly EventDraft[], batch?: EventBatch): Promise<void>;
  page(query: EventQuery): Promise<EventPage>;
  /** At most `count` entries after `position`, oldest first. Rejects when the store does. */
  after(position: string, count: number): Promise<EventStretch>;
  /** The newest position ever; `BEGINNING` before the first. Rejects when the store does. */
  newest(): Promise<string>;
  /** Follows the ring as it grows, over all replicas. The caller closes it. */
  tail(): EventTail;
}

/** The growing end of the ring, for one reader. */
export interface EventTail {
  /**
   * Like `after`, but waits up to `TAIL_WAIT_MS` for the first entry. A position that is `ahead` is
   * answered at once. Rejects when the store does, and when the tail is closed meanwhile.
   */
  read(position: string, count: number): Promise<EventStretch>;
  close(): void;
}

/** Longest wait of one read at the end of the ring, milliseconds. */
export const TAIL_WAIT_MS = 5_000;

/** One entry of the ring. `event` is undefined when the entry is damaged. */
export interface EventEntry {
  readonly id: string;
  readonly event: CommerceEvent | undefined;
}

/** The entries after a position. */
export interface EventStretch {
  readonly entries: readonly EventEntry[];
  readonly standing: Standing;
}

/**
 * How a position stands to the ring. `held`: it is an entry. `dropped`: it is older than all
 * entries of a trimmed ring, so entries after it may be gone. `ahead`: it is newer than every entry
 * ever, so the ring has lost its data. `unknown`: none of these; the ring never had this entry, or
 * dropped it and nothing after it.
 */
export type Standing = 'held' | 'dropped' | 'ahead' | 'unknown';

/** `call_` + UUIDv7. Unlike a request id it is unique, and no caller chooses or sees it. */
export const CALL_ID = /^call_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Largest `data` of an event, bytes serialised (contract 6). */
const MAX_EVENT_DATA_BYTES = 2_048;

/** An event as it is stored, without its id. Data that is too large is left out, never cut. */
export function eventJson(event: EventDraft): string {
  const whole = JSON.stringify(event);
  // A character is three bytes at most, so a short event needs no second look.
  if (event.data === undefined || 3 * whole.length <= MAX_EVENT_DATA_BYTES) return whole;
  if (Buffer.byteLength(JSON.stringify(event.data)) <= MAX_EVENT_DATA_BYTES) return whole;
  const { data: _, ...rest } = event;
  return JSON.stringify(rest);
}

/** A fresh call id. */
export function newCallId(nowMs: number = Date.now()): string {
  return newId('call_', nowMs);
}

/** When a call came in, Unix milliseconds of the gateway that took it. */
export function calledAtMs(callId: string): number {
  return Number.parseInt(`${callId.slice(5, 13)}${callId.slice(14, 18)}`, 16);
}

/** Random bytes behind the time of an id: 12 bits, the variant and 12 bits, 48 bits. */
const DRAW_BYTES = 10;
/** The place of those bytes in 16 random bytes. */
const DRAWN_FROM = 6;
const VARIANTS = '89ab';

/** Random bytes for 256 ids: one draw of many costs as much as one of 10 bytes. */
const pool = Buffer.alloc(256 * DRAW_BYTES);
/** The ends of ids that were not used yet, each of `END_LENGTH` characters. */
let ends = '';
let used = 0;
const END_LENGTH = 21;

let stampedMs = Number.NaN;
let stamp = '';

/**
 * A prefix and a UUIDv7 (RFC 9562, 5.7): its first 48 bits are Unix milliseconds, so that ids sort
 * by time.
 * @param random 16 bytes; given where the same thing must get the same id again
 */
export function newId(prefix = '', nowMs: number = Date.now(), random?: Uint8Array): string {
  const end = random === undefined ? drawn() : endsOf(Buffer.from(random).subarray(DRAWN_FROM));
  // Joined: JSON with one text that V8 keeps in pieces takes twice as long to write.
  return [prefix, stampOf(nowMs), end].join('');
}

/** All that comes before the random digits; ids of one millisecond share it. */
function stampOf(nowMs: number): string {
  if (nowMs !== stampedMs) {
    const hex = nowMs.toString(16).padStart(12, '0');
    stamp = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
    stampedMs = nowMs;
  }
  return stamp;
}

/** A fresh random end; each is used once. */
function drawn(): string {
  if (used === ends.length) {
    ends = endsOf(randomFillSync(pool));
    used = 0;
  }
  used += END_LENGTH;
  return ends.slice(used - END_LENGTH, used);
}

/** The ends of ids, one for each 10 random bytes. */
function endsOf(random: Buffer): string {
  const made: string[] = [];
  for (let at = 0; at < random.length; at += DRAW_BYTES) {
    const hex = random.toString('hex', at, at + DRAW_BYTES);
    const variant = VARIANTS[Number.parseInt(hex.slice(4, 5), 16) & 3] ?? '';
    made.push(hex.slice(1, 4), '-', variant, hex.slice(5, 8), '-', hex.slice(8));
  }
  return made.join('');
}
