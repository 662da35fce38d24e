/** The events of the audit trail, and the port of the ring that holds them for all replicas. */

import type { JsonObject } from '../json/types.ts';

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
  /** The gateway's own name of the call (call-id.ts). */
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

/** What follows a position. */
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
