import type { JsonObject } from '../json/types.ts';
import type { Channel, EventDraft, EventType } from './event.ts';

/** Where events go that no transition takes along. */
export interface EventSink {
  push(event: EventDraft): void;
  /** Hands back what still waits of one request, oldest first, as much as one write may carry. */
  withdraw(requestId: string): readonly EventDraft[];
}

/** What an event may say beside its type. */
export interface EventFacts {
  readonly status?: 'ok' | 'error';
  readonly durationMs?: number;
  readonly paymentProvider?: 'x402';
  readonly data?: JsonObject;
}

/**
 * The events of one call in the order they happened. A payment transition takes them along, so that
 * state and audit trail change in one write and in one order; whatever no transition took is
 * flushed to the batched feed. Without the journal the batch would reach the feed after the
 * transition, and a call would seem settled before it was requested.
 */
export interface Journal {
  record(type: EventType, facts?: EventFacts): void;
  /** Hands over what is waiting, for a transition to carry. */
  take(): readonly EventDraft[];
  /** Takes back what no transition carried after all, before everything recorded since. */
  putBack(events: readonly EventDraft[]): void;
  /** Sends what is waiting to the batched feed. */
  flush(): void;
}

/** Opens the journal of one call. */
export function openJournal(
  call: {
    readonly requestId: string;
    readonly callId?: string | undefined;
    readonly resourceId: string;
    readonly adapter: Channel;
  },
  sink: EventSink,
  now: () => Date = () => new Date(),
): Journal {
  let waiting: EventDraft[] = [];
  return {
    record(type, facts = {}) {
      const { requestId, callId, resourceId, adapter } = call;
      const ids = callId === undefined ? { requestId } : { requestId, callId };
      waiting.push({ type, ...ids, resourceId, at: now().toISOString(), adapter, ...facts });
    },
    take() {
      // An earlier call under the same request id (the one that was answered 402) may still wait
      // for its batch. One whose batch is on its way already was sent before us.
      const taken = [...sink.withdraw(call.requestId), ...waiting];
      waiting = [];
      return taken;
    },
    putBack(events) {
      waiting = [...events, ...waiting];
    },
    flush() {
      for (const event of waiting) sink.push(event);
      waiting = [];
    },
  };
}
