/**
 * `GET /api/events/stream`: follows the ring of events once for all readers of this process,
 * replays old events to a reader, and joins it to the live ones. A slow reader is cut.
 */

import { setTimeout as delay } from 'node:timers/promises';
import type { Request, RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import type { EventEntry, EventFeed, EventStretch, EventTail, Standing } from '../../events/event.ts';
import { BEGINNING, canonicalPosition, comparePositions, EVENT_ID } from '../../events/page.ts';
import { Places } from '../../limiter.ts';
import { onceClosed } from '../../server/http/access-record.ts';
import { readHeader } from '../../server/http/request.ts';
import { NO_SNIFFING } from '../../server/http/respond.ts';
import type { ClientOf } from '../../server/limits/client-address.ts';
import { StoreError } from '../../store/port/store-error.ts';

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
  /** Time since the store last answered, milliseconds; 0 without readers, up to 5,000 if idle. */
  readonly silentMs: number;
}

export type EventStream = ReturnType<typeof openEventStream>;

interface StreamParts {
  readonly feed: EventFeed;
  readonly gate: StreamGate;
  /** Most streams at the same time, which clients share; read for each new one. */
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
    const lost = isLoss(standing, seen);
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

/** Whether entries after a position are gone. `seen`: it was an entry of the ring before. */
function isLoss(standing: Standing, seen: boolean): boolean {
  return standing === 'dropped' || standing === 'ahead' || (standing === 'unknown' && seen);
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

/** Entries of one read. */
const READ_ENTRIES = 500;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** The state while the hub follows the ring, from its first reader to its last. */
interface Following {
  readonly tail: EventTail;
  /** Everything up to here was sent to the live readers. */
  position: string;
  /** Whether an entry was read at `position`: then only a loss of the ring can remove it. */
  seen: boolean;
}

/**
 * Sends the events of all replicas to the readers of this process. The ring is followed once and a
 * frame is made once, however many readers there are. Without readers the ring is not followed.
 */
class StreamHub {
  readonly #feed: EventFeed;
  readonly #onTrouble: (cause: unknown) => void;
  /** Readers of live events; with a position if the reader has events beyond the hub's position. */
  readonly #live = new Map<StreamReader, string | undefined>();
  #entered = 0;
  #opening: Promise<void> | undefined;
  #following: Following | undefined;
  #answeredAt = 0;

  /** `onTrouble`: called once when the store begins to fail, not for every attempt. */
  constructor(feed: EventFeed, onTrouble: (cause: unknown) => void) {
    this.#feed = feed;
    this.#onTrouble = onTrouble;
  }

  /**
   * Makes the hub follow the ring until each `enter` has its `leave`. Rejects, without having
   * entered, when the store does not answer.
   */
  async enter(): Promise<void> {
    this.#entered += 1;
    this.#opening ??= this.#open();
    const opening = this.#opening;
    try {
      await opening;
    } catch (thrown) {
      // The next caller tries again; another one may have done so already.
      if (this.#opening === opening) this.#opening = undefined;
      this.leave();
      throw thrown;
    }
  }

  leave(): void {
    this.#entered -= 1;
    if (this.#entered > 0) return;
    this.#opening = undefined;
    this.#following?.tail.close();
    this.#following = undefined;
  }

  /**
   * Sends live events to a reader that has everything up to `position`; without one, from now on.
   * False when the hub is beyond `position`: the reader must read the entries between first.
   */
  join(reader: StreamReader, position?: string): boolean {
    const at = this.#following?.position ?? BEGINNING;
    const ahead = position === undefined ? 0 : comparePositions(position, at);
    if (ahead < 0) return false;
    this.#live.set(reader, ahead === 0 ? undefined : position);
    return true;
  }

  part(reader: StreamReader): void {
    this.#live.delete(reader);
  }

  /** Milliseconds since the last answer of the ring; 0 without readers. */
  silentMs(): number {
    return this.#following === undefined ? 0 : performance.now() - this.#answeredAt;
  }

  async #open(): Promise<void> {
    const position = await this.#feed.newest();
    const following = { tail: this.#feed.tail(), position, seen: false };
    this.#following = following;
    this.#answeredAt = performance.now();
    void this.#follow(following);
  }

  /** Reads until the last reader left; after a failure from the same position. Never rejects. */
  async #follow(following: Following): Promise<void> {
    let failures = 0;
    while (this.#following === following) {
      try {
        const stretch = await following.tail.read(following.position, READ_ENTRIES);
        // The last reader may have left meanwhile, and a new one may have begun another following.
        if (this.#following !== following) return;
        await this.#send(following, stretch);
        this.#answeredAt = performance.now();
        failures = 0;
      } catch (cause) {
        if (this.#following !== following) return;
        if (failures === 0) this.#onTrouble(cause);
        await delay(Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS), undefined, { ref: false });
        failures += 1;
      }
    }
  }

  async #send(following: Following, { entries, standing }: EventStretch): Promise<void> {
    const lost = isLoss(standing, following.seen);
    const last = entries.at(-1);
    // A ring that lost its data has lower positions: a reader that waited for a higher one would
    // never get an event again.
    const restart = lost && last === undefined ? await this.#feed.newest() : undefined;
    if (lost) for (const reader of this.#live.keys()) reader.gap();
    if (standing === 'ahead') for (const reader of this.#live.keys()) this.#live.set(reader, undefined);
    if (last !== undefined) {
      following.position = last.id;
      following.seen = true;
      this.#publish(entries);
    } else if (restart !== undefined) {
      following.position = restart;
      following.seen = false;
    }
  }

  #publish(entries: readonly EventEntry[]): void {
    let frames: Buffer | undefined;
    for (const [reader, known] of this.#live) {
      if (known === undefined) {
        frames ??= framesOf(entries);
        if (frames !== undefined) reader.take(frames);
        continue;
      }
      const unknown = entries.filter(({ id }) => comparePositions(id, known) > 0);
      if (unknown.length === 0) continue;
      this.#live.set(reader, undefined);
      const rest = framesOf(unknown);
      if (rest !== undefined) reader.take(rest);
    }
  }
}

/** How long a client waits before it connects again, milliseconds (contract 6). */
const RETRY_MS = 2_000;

/** Between two heartbeats, milliseconds (specification 8). */
export const HEARTBEAT_MS = 15_000;
/** Bytes that may wait for one reader; with more it is cut, and may resume (contract 6). */
const MAX_UNSENT_BYTES = 1_048_576;
/** How long a reader of old events may take none, milliseconds. */
export const STALLED_MS = 30_000;
/** How long the last bytes may take, milliseconds: no reader may delay the end of the process. */
const END_TIMEOUT_MS = 500;
const NOTHING = Buffer.alloc(0);

/** The first bytes of every stream (specification 6). */
const CONNECTED = comment('connected', `retry: ${RETRY_MS}\n\n`);
const HEARTBEAT = comment('heartbeat');
/** Events were dropped before they were sent to this reader. */
const GAP = comment('gap');
/** The stream ends: the reader resumes, at another process in a drain. */
const DRAINING = comment('draining');

/** One connection that reads the stream. A slow one is cut, and does not delay the others. */
class StreamReader {
  readonly #res: Response;
  readonly #onCut: () => void;

  /** `onCut`: called when this reader is cut. */
  constructor(res: Response, onCut: () => void) {
    this.#res = res;
    this.#onCut = onCut;
    const heartbeat = setInterval(() => this.take(HEARTBEAT), HEARTBEAT_MS).unref();
    onceClosed(res, () => clearInterval(heartbeat));
  }

  /** Whether nothing more can be sent. */
  get gone(): boolean {
    return this.#res.closed || this.#res.destroyed || this.#res.writableEnded;
  }

  /** Sends bytes without waiting; cuts a reader that has too many unsent ones. */
  take(bytes: Buffer): void {
    if (this.gone || !this.#res.headersSent) return;
    if (this.#res.writableLength > MAX_UNSENT_BYTES) this.#cut();
    else this.#res.write(bytes);
  }

  gap(): void {
    this.take(GAP);
  }

  /** Sends bytes; resolves when there is room for more. Cuts a reader that takes none for 30 s. */
  send(bytes: Buffer): Promise<void> {
    if (this.gone || this.#res.write(bytes)) return Promise.resolve();
    return new Promise((resolve) => {
      const go = (): void => {
        clearTimeout(stalled);
        this.#res.off('drain', go).off('close', go);
        resolve();
      };
      const stalled = setTimeout(() => this.#cut(), STALLED_MS).unref();
      this.#res.on('drain', go).on('close', go);
    });
  }

  /**
   * Ends the stream, at once if bytes are still unsent. A response without a head is left to its
   * route.
   */
  end(last: Uint8Array = NOTHING): void {
    if (this.gone || !this.#res.headersSent) return;
    if (this.#res.writableLength > 0) {
      this.#res.destroy();
      return;
    }
    this.#res.end(last);
    const late = setTimeout(() => this.#res.destroy(), END_TIMEOUT_MS).unref();
    onceClosed(this.#res, () => clearTimeout(late));
  }

  #cut(): void {
    this.#onCut();
    this.#res.destroy();
  }
}

/** The frames of the readable entries, as unnamed messages; undefined without any. */
function framesOf(entries: readonly EventEntry[]): Buffer | undefined {
  let frames = '';
  for (const { id, event } of entries)
    if (event !== undefined) frames += `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`;
  return frames === '' ? undefined : Buffer.from(frames);
}

function comment(text: string, more = ''): Buffer {
  return Buffer.from(`: ${text}\n\n${more}`);
}
