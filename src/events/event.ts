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

/**
 * The protocol a call came in by; `adapter` of an event, `protocol` of a receipt, `exposedVia` of a
 * resource.
 */
export type Channel = 'http' | 'mcp' | 'a2a' | 'acp';

/** An event before the feed gave it a position (contract 6). */
export interface EventDraft {
  readonly type: EventType;
  readonly requestId: string;
  /**
   * The gateway's own name for the call (call-id.ts); absent from events of calls that an earlier
   * release took.
   */
  readonly callId?: string;
  readonly resourceId: string;
  /** ISO 8601, when it happened. */
  readonly at: string;
  readonly adapter?: Channel;
  readonly paymentProvider?: 'x402';
  readonly durationMs?: number;
  readonly status?: 'ok' | 'error';
  /** At most 2,048 bytes serialised; larger data is left out by the feed, never cut. */
  readonly data?: JsonObject;
}

/**
 * An event as operators read it: `id` is `evt_<ms>-<seq>`, its position in the one feed of all
 * replicas.
 */
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

/**
 * Names a batch, so that a store can recognise one whose reply was lost: numbers of one queue only
 * grow.
 */
export interface EventBatch {
  /** Random, one for each queue of each process. */
  readonly queue: string;
  readonly sequence: number;
}

/**
 * The ring of events. Events of payment transitions do not come this way: they ride in the
 * transition's own script.
 */
export interface EventFeed {
  /**
   * Appends in order, in one write. Rejects when the store does. With `batch` a repeated append
   * changes nothing twice.
   */
  append(events: readonly EventDraft[], batch?: EventBatch): Promise<void>;
  page(query: EventQuery): Promise<EventPage>;
  /**
   * At most `count` entries strictly after `position`, oldest first. Rejects when the store does.
   */
  after(position: string, count: number): Promise<EventStretch>;
  /**
   * Position of the newest entry there ever was; `BEGINNING` before the first. Rejects when the
   * store does.
   */
  newest(): Promise<string>;
  /** Opens what follows the ring as it grows, over all replicas. Whoever opened it closes it. */
  tail(): EventTail;
}

/** The growing end of the ring, for one reader. */
export interface EventTail {
  /**
   * Like `after`, but waits up to `TAIL_WAIT_MS` for the first entry; then empty. A position that
   * is `ahead` is answered at once. Rejects when the store does, and when it is closed meanwhile.
   */
  read(position: string, count: number): Promise<EventStretch>;
  close(): void;
}

/** Longest wait of one read at the end of the ring, milliseconds. */
export const TAIL_WAIT_MS = 5_000;

/** One entry of the ring. `event` is undefined when what lies there cannot be read. */
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
 * How the ring stands to a position. `held`: it is an entry. `dropped`: entries after it were
 * trimmed, as far as can be told: it is older than all that is left. `ahead`: newer than everything
 * there ever was, so the ring has lost its memory. `unknown`: none of these; the ring never had
 * this entry, or has it no more and dropped nothing after it.
 */
export type Standing = 'held' | 'dropped' | 'ahead' | 'unknown';
