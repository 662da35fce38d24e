/** `GET /api/events/stream`: replays old events to a reader and joins it to the live ones. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Request, RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import type { EventFeed, EventStretch } from '../../events/event.ts';
import { canonicalPosition, EVENT_ID } from '../../events/page.ts';
import { Places } from '../../limiter.ts';
import { readHeader } from '../../server/http/headers.ts';
import { onceClosed } from '../../server/http/once-closed.ts';
import { NO_SNIFFING } from '../../server/http/respond.ts';
import type { ClientOf } from '../../server/limits/client-address.ts';
import { StoreError } from '../../store/port/store-error.ts';
import { READ_ENTRIES, StreamHub } from './stream-hub.ts';
import { CONNECTED, DRAINING, framesOf, StreamReader } from './stream-reader.ts';

/** Entries written at once, a few dozen KiB: a slow connection gets 30 s for each such portion. */
const PORTION_ENTRIES = 50;
/** Pause before the next read for an event that the hub has and the read did not show. */
const AGAIN_MS = 20;

/** Without a charset: the format is UTF-8 always, and clients compare the type exactly. */
const HEAD = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
  ...NO_SNIFFING,
} as const;
/** Retry-After while all slots are taken, seconds (contract 1.2). */
const RETRY_WHEN_FULL_S = 5;
/** Retry-After during the drain, seconds: the next connection reaches another process. */
const RETRY_WHEN_DRAINING_S = 1;

/** The part of the lifecycle that streams depend on. */
interface StreamGate {
  draining(): boolean;
  onDraining(listener: () => void): void;
}

/** Facts for the metrics. */
interface StreamFacts {
  /** Readers now. */
  readonly readers: number;
  /** Readers cut because they were too slow, in all. */
  readonly cut: number;
  /** Since the last answer of the store, milliseconds; 0 without readers, up to 5,000 if idle. */
  readonly silentMs: number;
}

export type EventStream = ReturnType<typeof openEventStream>;

interface StreamParts {
  readonly feed: EventFeed;
  readonly gate: StreamGate;
  /** Streams at the same time, which clients share; read for each new one. */
  readonly maxStreams: number | (() => number);
  readonly clientOf: ClientOf;
  /** Called once when the store begins to fail, not for every attempt. */
  readonly onTrouble: (cause: unknown) => void;
}

/**
 * The live feed of all replicas (specification 6, contract 6). A reader has a slot until its
 * connection is closed. All streams end when the drain begins: readers resume at another process,
 * and do not delay the end of this one.
 */
export function openEventStream(parts: StreamParts) {
  const { feed, gate, onTrouble } = parts;
  const hub = new StreamHub(feed, onTrouble);
  const readers = new Set<StreamReader>();
  const places = new Places(parts.maxStreams, 'share');
  let cut = 0;
  /** Ends every stream. */
  const close = (): void => {
    for (const reader of readers) reader.end(DRAINING);
  };
  gate.onDraining(close);

  /** Enters the hub until the connection is closed. */
  const admitted = async (res: Response): Promise<StreamReader> => {
    const reader = new StreamReader(res, () => {
      cut += 1;
    });
    readers.add(reader);
    onceClosed(res, () => readers.delete(reader));
    await hub.enter();
    if (reader.gone) hub.leave();
    else
      onceClosed(res, () => {
        hub.part(reader);
        hub.leave();
      });
    return reader;
  };

  const route: RequestHandler = async function eventStream(req, res) {
    const from = resumePosition(req);
    refuseWhileDraining(gate);
    const holders = [parts.clientOf(req)];
    if (!places.take(holders)) throw busy(RETRY_WHEN_FULL_S, 'Every slot for a stream is taken.');
    onceClosed(res, () => places.giveBack(holders));
    if (req.method === 'HEAD') {
      res.writeHead(200, HEAD);
      res.end();
      return;
    }
    const [reader, first] = await answered(async () => {
      const entered = await admitted(res);
      return [entered, from === undefined ? undefined : await feed.after(from, READ_ENTRIES)] as const;
    });
    if (reader.gone) return;
    refuseWhileDraining(gate);
    res.writeHead(200, HEAD);
    reader.take(CONNECTED);
    if (from === undefined || first === undefined) hub.join(reader);
    else await resumed(reader, from, first);
  };

  /** The head is out: when the store fails the stream ends, and the reader resumes. */
  const resumed = async (reader: StreamReader, from: string, first: EventStretch): Promise<void> => {
    try {
      await replay(reader, from, first, { feed, hub });
    } catch (thrown) {
      if (!(thrown instanceof StoreError)) throw thrown;
      reader.end();
    }
  };
  const facts = (): StreamFacts => ({ readers: readers.size, cut, silentMs: hub.silentMs() });
  return { route, facts, close };
}

/**
 * Sends a reader all that the ring has after `from`, page by page with backpressure, and joins it
 * to the live events with no event lost and none repeated. `first`: the first page. Rejects when
 * the store does; the reader can resume after the last event it got.
 */
async function replay(
  reader: StreamReader,
  from: string,
  first: EventStretch,
  { feed, hub }: { readonly feed: EventFeed; readonly hub: StreamHub },
): Promise<void> {
  let position = from;
  // A caller may invent a position; one that was read here is missing only if the ring lost it.
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
    // No `await` between `join` and `take`: the hub would be beyond the position again.
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

/** The event to resume after. @throws GatewayError for an invalid or repeated header */
function resumePosition(req: Request): string | undefined {
  const header = readHeader(req, 'last-event-id');
  if (header.kind === 'absent') return undefined;
  if (header.kind === 'single' && EVENT_ID.test(header.value)) return canonicalPosition(header.value);
  throw new GatewayError('INPUT_INVALID', {
    message: 'Last-Event-ID must be the id of one event.',
    details: { field: 'Last-Event-ID' },
  });
}

function refuseWhileDraining(gate: StreamGate): void {
  if (gate.draining()) throw busy(RETRY_WHEN_DRAINING_S, 'The gateway is shutting down.');
}

function busy(retryAfterS: number, message: string): GatewayError {
  return new GatewayError('GATEWAY_BUSY', { message, headers: { 'retry-after': String(retryAfterS) } });
}

/** @throws GatewayError STORAGE_ERROR when the store gives no answer */
async function answered<T>(asked: () => Promise<T>): Promise<T> {
  try {
    return await asked();
  } catch (thrown) {
    throw thrown instanceof StoreError
      ? new GatewayError('STORAGE_ERROR', { message: 'The store is not available.', cause: thrown })
      : thrown;
  }
}
