/** Collects the events of one call until a payment transition or the batched feed takes them. */

import type { JsonObject } from '../json/json.ts';
import { isoTime } from '../time/time.ts';
import type { EventDraft, EventType, Protocol } from './event.ts';

/** The batched feed, which takes the events that no transition carries. */
export interface EventSink {
  push(event: EventDraft): void;
  /** Hands back the waiting events of one request, oldest first, as many as one write may carry. */
  withdraw(requestId: string): readonly EventDraft[];
}

/** The facts that an event may have beside its type. */
export interface EventFacts {
  readonly status?: 'ok' | 'error';
  readonly durationMs?: number;
  readonly paymentProvider?: 'x402';
  readonly data?: JsonObject;
}

/**
 * The events of one call in their order. A payment transition carries them in its own write, so
 * that state and audit trail change together; the others are flushed to the batched feed. Without
 * the journal a batch would reach the feed after the transition, and a call would seem settled
 * before it was requested.
 */
export interface Journal {
  record(type: EventType, facts?: EventFacts): void;
  /** Hands over the waiting events, for a transition to carry. */
  take(): readonly EventDraft[];
  /** Takes back events that no transition carried, before those recorded since. */
  putBack(events: readonly EventDraft[]): void;
  /** Sends the waiting events to the batched feed. */
  flush(): void;
  /** Flushes for a refused call; its request event gets code and reason if it is the last one. */
  refused(code: string, reason: string | undefined): void;
}

/** Opens the journal of one call. `now`: Unix milliseconds. */
export function openJournal(
  call: {
    readonly requestId: string;
    readonly callId: string;
    readonly resourceId: string;
    readonly adapter: Protocol;
  },
  sink: EventSink,
  now: () => number = Date.now,
): Journal {
  let waiting: EventDraft[] = [];
  const journal: Journal = {
    record(type, facts) {
      const { requestId, callId, resourceId, adapter } = call;
      const bare = { type, requestId, callId, resourceId, at: isoTime(now()), adapter };
      waiting.push(facts === undefined ? bare : Object.assign(bare, facts));
    },
    take() {
      // Events of an earlier call under the same request id (the one that was answered 402) may
      // still wait for their batch. A batch that is being sent reaches the feed before this write.
      const earlier = sink.withdraw(call.requestId);
      const taken = earlier.length === 0 ? waiting : [...earlier, ...waiting];
      waiting = [];
      return taken;
    },
    putBack(events) {
      waiting = [...events, ...waiting];
    },
    flush() {
      if (waiting.length === 0) return;
      for (const event of waiting) sink.push(event);
      waiting = [];
    },
    refused(code, reason) {
      const last = waiting.at(-1);
      const data = reason === undefined ? { code } : { code, reason };
      if (last?.type === 'resource.requested') waiting[waiting.length - 1] = { ...last, status: 'error', data };
      journal.flush();
    },
  };
  return journal;
}
