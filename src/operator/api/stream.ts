import { setTimeout as delay } from 'node:timers/promises';
import type { Request, RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import type { EventFeed, EventStretch } from '../../events/event.ts';
import { canonicalPosition, EVENT_ID } from '../../events/position.ts';
import { readHeader } from '../../server/http/headers.ts';
import { StoreError } from '../../store/port/store.ts';
import { READ_ENTRIES, StreamHub } from './stream-hub.ts';
import { CONNECTED, DRAINING, framesOf, StreamReader } from './stream-reader.ts';

/** Entries written at once: a slow line gets 30 s for each such portion, a few dozen KiB. */
const PORTION_ENTRIES = 50;
/**
 * Before asking again for an event that the hub knows and the ring did not show yet, milliseconds.
 */
const AGAIN_MS = 20;

/**
 * Gives a reader all that the ring still has after `from`, page by page as he takes it, and joins
 * him to the live events with nothing lost and nothing doubled. `first` is the first page, read
 * already. Rejects when the store does; what was written stays right, so the reader can resume from
 * it.
 */
async function replay(
  reader: StreamReader,
  from: string,
  first: EventStretch,
  { feed, hub }: { readonly feed: EventFeed; readonly hub: StreamHub },
): Promise<void> {
  let position = from;
  // A caller may have made his position up; one that was read here can only be missing when the
  // ring lost it.
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
    // From the question to the writing nothing may be waited for: the hub would be further again.
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

/** Without a charset, which the format has no use for and exact comparisons stumble over. */
const HEAD = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
} as const;
/** For who finds every place taken, seconds (contract 1.2). */
const RETRY_WHEN_FULL_S = 5;
/** For who comes while the process ends, seconds: the next connection reaches another one. */
const RETRY_WHEN_DRAINING_S = 1;

/** What a stream must know of the life of the process. */
interface StreamGate {
  draining(): boolean;
  onDraining(listener: () => void): void;
}

/** What metrics may tell of the streams. */
interface StreamFacts {
  /** Readers now. */
  readonly readers: number;
  /** Readers cut because they were too slow, in all. */
  readonly cut: number;
  /**
   * Since the store was last heard, milliseconds; 0 while nobody reads, up to 5,000 in quiet times.
   */
  readonly silentMs: number;
}

/** `GET /api/events/stream`, to stand behind the operator's token. */
export interface EventStream {
  readonly route: RequestHandler;
  facts(): StreamFacts;
  /** Ends every stream. */
  close(): void;
}

interface StreamParts {
  readonly feed: EventFeed;
  readonly gate: StreamGate;
  /** Streams at the same time. */
  readonly maxStreams: number;
  /** Told once when the store begins to fail under the streams. */
  readonly onTrouble: (cause: unknown) => void;
}

/**
 * The live feed of all replicas (specification 6, contract 6). A reader has a place until his
 * connection is closed. All streams end when the drain begins: their readers resume at another
 * process, and none of them can hold up the end of this one.
 */
export function openEventStream({ feed, gate, maxStreams, onTrouble }: StreamParts): EventStream {
  const hub = new StreamHub(feed, onTrouble);
  const readers = new Set<StreamReader>();
  let cut = 0;
  const close = (): void => {
    for (const reader of readers) reader.end(DRAINING);
  };
  gate.onDraining(close);

  /** Takes a place and enters the hub, both until the connection is closed. */
  const admitted = async (res: Response): Promise<StreamReader> => {
    const reader = new StreamReader(res, () => {
      cut += 1;
    });
    readers.add(reader);
    res.once('close', () => readers.delete(reader));
    await hub.enter();
    if (reader.gone) hub.leave();
    else
      res.once('close', () => {
        hub.part(reader);
        hub.leave();
      });
    return reader;
  };

  const route: RequestHandler = async function eventStream(req, res) {
    const from = resumePosition(req);
    refuseWhileDraining(gate);
    if (readers.size >= maxStreams) throw busy(RETRY_WHEN_FULL_S, 'Every place for a stream is taken.');
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

  /** The head is out: who cannot be served on is let go, and resumes. */
  const resumed = async (reader: StreamReader, from: string, first: EventStretch): Promise<void> => {
    try {
      await replay(reader, from, first, { feed, hub });
    } catch (thrown) {
      if (!(thrown instanceof StoreError)) throw thrown;
      reader.end();
    }
  };
  return { route, facts: () => ({ readers: readers.size, cut, silentMs: hub.silentMs() }), close };
}

/**
 * The event after which a reader wants to go on. @throws GatewayError for a header that is no
 * position or came twice
 */
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
