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

/** The protocol a call came in by; `adapter` of an event, `protocol` of a receipt, `exposedVia` of a resource. */
export type Channel = 'http' | 'mcp' | 'a2a' | 'acp';

/** An event before the feed gave it a position (CONTRACT 6). */
export interface EventDraft {
  readonly type: EventType;
  readonly requestId: string;
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

/** An event as operators read it: `id` is `evt_<ms>-<seq>`, its position in the one feed of all replicas. */
export interface CommerceEvent extends EventDraft {
  readonly id: string;
}

/** Newest first. `cursor` is an event id: only older events are returned. */
export interface EventQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly requestId?: string;
  readonly resourceId?: string;
  readonly type?: string;
}

export interface EventPage {
  readonly events: readonly CommerceEvent[];
  /** Present when older events remain. */
  readonly nextCursor?: string;
}

/** The shape of an event id, checked before a caller's cursor reaches a store. */
export const EVENT_ID = /^evt_\d{1,16}-\d{1,10}$/;

/** Names a batch, so that a store can recognise one whose reply was lost: numbers of one queue only grow. */
export interface EventBatch {
  /** Random, one for each queue of each process. */
  readonly queue: string;
  readonly sequence: number;
}

/** The ring of events. Events of payment transitions do not come this way: they ride in the transition's own script. */
export interface EventFeed {
  /** Appends in order, in one write. Rejects when the store does. With `batch` a repeated append changes nothing twice. */
  append(events: readonly EventDraft[], batch?: EventBatch): Promise<void>;
  page(query: EventQuery): Promise<EventPage>;
}
