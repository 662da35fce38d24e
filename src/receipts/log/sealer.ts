/**
 * Seals the log of receipts in the background: what this process wrote, and what a process that
 * died left behind. No call waits for it.
 */

import type { SigningKey } from '../../crypto/signing-key.ts';
import { isoTime } from '../../time/iso-time.ts';
import { type Checkpoint, headOf, readCheckpoint, signCheckpoint } from './checkpoint.ts';
import type { CarriedLine, NumberedCheckpoint, ReceiptLogStore, Sealed, Sealing } from './log-store.ts';
import { order, placeOf } from './place.ts';
import { digestOf, lineCodes, readVersion } from './series.ts';

/** Versions that one checkpoint seals at most. */
const SEALED_AT_ONCE = 1_000;
/** Longest wait of a version until it is sealed, milliseconds. */
const EVERY_MS = 60_000;
/** Versions of another process that waited for this long are sealed here, milliseconds. */
const LEFT_BEHIND_MS = 3 * EVERY_MS;
/** Between two looks at how many versions were made, milliseconds. */
const LOOK_EVERY_MS = 1_000;
/** Checkpoints that are trimmed with a new one at most. */
const TRIMMED_WITH_ONE = 2;
/** Attempts at one checkpoint: another process may write one meanwhile. */
const MOST_ATTEMPTS = 20;
const READ_AT_ONCE = 100;

/** Found while sealing. `lost`: a checkpoint that this process saw. `foreign`: lines that wait. */
type Tampering =
  | { readonly what: 'lost'; readonly number: number; readonly checkpoint: string }
  | { readonly what: 'foreign'; readonly lines: number };

export interface SealerOptions {
  readonly merchant: string;
  readonly key: SigningKey;
  /** Versions in the log above which the oldest are trimmed. */
  readonly maxVersions: number;
  readonly onSealed?: () => void;
  /** Told of what no gateway does. */
  readonly onTampering?: (found: Tampering) => void;
  readonly leftBehindMs?: number;
}

/** A part of one series, ready to be sealed. */
interface Batch {
  readonly series: string;
  readonly positions: readonly string[];
  /** As a checkpoint seals them. */
  readonly versions: string;
  /** Has more than what was carried. */
  readonly isFresh: boolean;
}

interface ReceiptSealer {
  /** Seals all that waits and is this process's, or was left behind. @throws StoreError */
  seal(): Promise<void>;
}

export function createSealer(store: ReceiptLogStore, options: SealerOptions): ReceiptSealer {
  return new Sealer(store, options);
}

class Sealer implements ReceiptSealer {
  readonly #store: ReceiptLogStore;
  readonly #options: SealerOptions;
  readonly #codes: ReturnType<typeof lineCodes>;
  #newest: NumberedCheckpoint | undefined;
  /** Where the own series ends in what is sealed up to `number`. */
  #end: Pick<Checkpoint, 'number' | 'to' | 'head'> = { number: 0, to: 0, head: '' };
  #foreign = 0;

  constructor(store: ReceiptLogStore, options: SealerOptions) {
    this.#store = store;
    this.#options = options;
    this.#codes = lineCodes(options.key);
  }

  async seal(): Promise<void> {
    for (let attempts = 0; attempts < MOST_ATTEMPTS; ) {
      const batch = await this.#nextBatch();
      if (batch === undefined) return;
      if (await this.#sealBatch(batch)) attempts = 0;
      else attempts += 1;
    }
  }

  /** The oldest lines of one series. */
  async #nextBatch(): Promise<Batch | undefined> {
    const { leftBehindMs = LEFT_BEHIND_MS } = this.#options;
    const lines: { readonly position: string; readonly text: string }[] = [];
    let series: string | undefined;
    let foreign = 0;
    for (let after: string | undefined, more = true; more; ) {
      const page = await this.#store.waiting(after, SEALED_AT_ONCE);
      for (const { position, atMs, line } of page) {
        const opened = this.#codes.open(line);
        if (opened === undefined) {
          foreign += 1;
          continue;
        }
        if (opened.series !== this.#store.series.id && Date.now() - atMs < leftBehindMs) continue;
        series ??= opened.series;
        if (series === opened.series && lines.length < SEALED_AT_ONCE) lines.push({ position, text: opened.text });
      }
      after = page.at(-1)?.position;
      more = page.length === SEALED_AT_ONCE && lines.length < SEALED_AT_ONCE;
    }
    this.#tellForeign(foreign);
    if (series === undefined) return undefined;
    return {
      series,
      positions: lines.map(({ position }) => position),
      versions: lines.map(({ position, text }) => `${position} ${text}\n`).join(''),
      isFresh: lines.some(({ text }) => !text.startsWith('carried ')),
    };
  }

  /** They stay, so that a verification finds them. */
  #tellForeign(lines: number): void {
    if (lines > this.#foreign) this.#options.onTampering?.({ what: 'foreign', lines: lines - this.#foreign });
    this.#foreign = lines;
  }

  async #sealBatch({ series, positions, versions, isFresh }: Batch): Promise<boolean> {
    const { key, merchant } = this.#options;
    const newest = await this.#readNewest();
    const last = newest === undefined ? undefined : readCheckpoint(newest.checkpoint);
    const { to: from, head: before } = await this.#endOf(series, newest?.number ?? 0);
    const to = from + positions.length;
    const trim =
      isFresh && newest !== undefined && last !== undefined ? await this.#trim(last, newest.number) : undefined;
    const trimmed = trim?.trimmed ?? last?.trimmed;
    const now = isoTime();
    const checkpoint: Checkpoint = {
      ...{ merchant, series, from, to, before },
      number: (newest?.number ?? 0) + 1,
      previous: newest === undefined ? '' : digestOf(newest.checkpoint),
      head: headOf(before, versions),
      versions: (last?.versions ?? 0) + positions.length,
      since: last?.since ?? beginningOf(this.#store.series.id),
      at: now,
      ...(trimmed === undefined ? {} : { trimmed }),
    };
    const sealed: Sealed = { number: checkpoint.number, checkpoint: signCheckpoint(checkpoint, key), versions };
    const sealing: Sealing = { positions, trimmed: trim?.trimmed.number ?? 0, carried: trim?.carried ?? [] };
    if (!(await this.#store.seal(sealed, sealing))) return false;
    this.#newest = sealed;
    this.#options.onSealed?.();
    if (series === this.#store.series.id) this.#end = checkpoint;
    return true;
  }

  /** The newest checkpoint. Notices when one that this process has seen is gone. */
  async #readNewest(): Promise<NumberedCheckpoint | undefined> {
    const bounds = await this.#store.bounds();
    const seen = this.#newest;
    this.#newest =
      bounds &&
      ((await this.#store.checkpoints(bounds.last, bounds.last))[0] ?? { number: bounds.last, checkpoint: '' });
    if (seen === undefined || seen.checkpoint === this.#newest?.checkpoint) return this.#newest;
    const [still] = await this.#store.checkpoints(seen.number, seen.number);
    if (still?.checkpoint !== seen.checkpoint && !(bounds !== undefined && seen.number < bounds.first)) {
      this.#options.onTampering?.({ what: 'lost', ...seen });
      this.#end = { number: 0, to: 0, head: '' };
    }
    return this.#newest;
  }

  /** Where a series ends in what is sealed. */
  async #endOf(series: string, last: number): Promise<Pick<Checkpoint, 'to' | 'head'>> {
    // The own series goes on behind what another process sealed of it.
    const end = series === this.#store.series.id ? this.#end : { number: 0, to: 0, head: '' };
    for (let to = last; to > end.number; to -= READ_AT_ONCE) {
      const found = await this.#store.checkpoints(Math.max(end.number + 1, to - READ_AT_ONCE + 1), to);
      for (const { checkpoint } of found.toReversed()) {
        const read = readCheckpoint(checkpoint);
        if (read?.series === series) return read;
      }
      if (found.length === 0) break;
    }
    return end;
  }

  /** What a new checkpoint trims where the log is over its bound. */
  async #trim(last: Checkpoint, lastNumber: number) {
    const { maxVersions } = this.#options;
    const done = last.trimmed?.versions ?? 0;
    const from = (last.trimmed?.number ?? 0) + 1;
    if (last.versions - done <= maxVersions || from > lastNumber) return undefined;
    const oldest = await this.#store.sealed(from, Math.min(from + TRIMMED_WITH_ONE - 1, lastNumber));
    const newest = oldest.at(-1);
    const read = newest && readCheckpoint(newest.checkpoint);
    // What is damaged stays, so that a verification finds it.
    if (newest === undefined || read === undefined || newest.number !== from + oldest.length - 1) return undefined;
    const { number, checkpoint } = newest;
    const position = latestOf(oldest, last.trimmed?.position);
    return {
      trimmed: { number, digest: digestOf(checkpoint), versions: read.versions, position },
      carried: await this.#carried(oldest),
    };
  }

  /** Lines for the versions that are the present texts of receipts. */
  async #carried(sealed: readonly Sealed[]): Promise<readonly CarriedLine[]> {
    const known = new Map<string, Map<string, { readonly position: string; readonly isOwed: boolean }>>();
    for (const line of sealed.flatMap(({ versions }) => versions.split('\n'))) {
      const space = line.indexOf(' ');
      const version = readVersion(line.slice(space + 1));
      if (version === undefined || !('digest' in version)) continue;
      const { id, digest, isOwed } = version;
      const position = version.kind === 'carried' ? version.position : line.slice(0, space);
      known.set(id, (known.get(id) ?? new Map()).set(digest, { position, isOwed }));
    }
    const carried: CarriedLine[] = [];
    for (const [id, text] of await this.#store.receiptsOf([...known.keys()])) {
      const digest = digestOf(text);
      const version = known.get(id)?.get(digest);
      if (version === undefined) continue;
      const { position, isOwed } = version;
      carried.push({ id, text, line: this.#store.series.carried({ id, digest, isOwed }, position) });
    }
    return carried;
  }
}

/** The latest position of what is sealed, and of what was trimmed before it. */
function latestOf(sealed: readonly Sealed[], before = ''): string {
  let latest = before;
  for (const { versions } of sealed) {
    // The lines of a checkpoint stand in the order of their positions.
    const [position = ''] = versions.split('\n').at(-2)?.split(' ', 1) ?? [];
    const [place, known] = [placeOf(position), placeOf(latest)];
    if (place !== undefined && (known === undefined || order(place, known) > 0)) latest = position;
  }
  return latest;
}

/** When a series began, ISO 8601. */
function beginningOf(series: string): string {
  const uuid = series.slice('series_'.length);
  return isoTime(Number.parseInt(`${uuid.slice(0, 8)}${uuid.slice(9, 13)}`, 16));
}

interface SealingService {
  /** Seals what is left. Never throws. */
  stop(): Promise<void>;
}

/** Seals each minute, and after every 1,000 versions. `failed`: told once while the store fails. */
export function startSealing(
  store: ReceiptLogStore,
  options: SealerOptions,
  failed: (cause: unknown) => void,
  everyMs: number = EVERY_MS,
): SealingService {
  const sealer = createSealer(store, options);
  let sealedMade = 0;
  let dueMs = performance.now() + everyMs;
  let failing = false;
  let running: Promise<void> | undefined;

  const round = async (): Promise<void> => {
    const made = store.series.made();
    try {
      await sealer.seal();
      sealedMade = made;
      failing = false;
    } catch (cause) {
      if (!failing) failed(cause);
      failing = true;
    }
    dueMs = performance.now() + everyMs;
  };
  const run = (): Promise<void> => {
    running ??= round().finally(() => {
      running = undefined;
    });
    return running;
  };
  const timer = setInterval(
    () => {
      const isDue = performance.now() >= dueMs || (!failing && store.series.made() - sealedMade >= SEALED_AT_ONCE);
      if (isDue) void run();
    },
    Math.min(LOOK_EVERY_MS, everyMs),
  ).unref();
  return {
    async stop() {
      clearInterval(timer);
      await running;
      await run();
    },
  };
}
