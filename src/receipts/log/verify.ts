/**
 * Verifies the log of receipts, and the book by the log: finds what was removed, changed, put in
 * another order or added by anything that does not hold the signing key.
 */

import type { PublicJwk } from '../../crypto/signing-key.ts';
import { type Checkpoint, checkpointSignatures, headOf, readCheckpoint } from './checkpoint.ts';
import type { ReceiptLogStore, Sealed } from './log-store.ts';
import { order, type Place, placeOf } from './place.ts';
import { digestOf, type LineCodes, type ReceiptVersion, readVersion } from './series.ts';

/** Something that no holder of the key did. */
interface LogFinding {
  /** `checkpoint 7`, `receipt_…`, `a waiting line`, or `the log`. */
  readonly about: string;
  readonly what: string;
}

export interface LogReport {
  readonly findings: readonly LogFinding[];
  /** The newest checkpoint: what an operator copies away. Absent: nothing is sealed yet. */
  readonly last?: { readonly number: number; readonly jws: string };
  /** Copies of which the log says nothing, because it has trimmed what they sealed. */
  readonly outdated: readonly number[];
  readonly checkpoints: number;
  /** That were read, those that wait to be sealed among them. */
  readonly versions: number;
  readonly waiting: number;
  /** In the book. */
  readonly receipts: number;
  /** Receipts that are gone by the bounds of the book, or were never paid. */
  readonly dropped: number;
  /** Receipts from before the log. */
  readonly earlier: number;
}

interface LogTrust {
  readonly merchant: string;
  /** Keys of checkpoints, present and earlier ones. */
  readonly keys: readonly PublicJwk[];
  readonly codes: LineCodes;
}

interface Verification {
  /** Checkpoints that were taken earlier. */
  readonly copies?: readonly string[];
  /** Receipts from before need not be in the log, Unix milliseconds. */
  readonly sinceMs?: number;
}

const RECEIPTS_AT_ONCE = 1_000;
const LINES_AT_ONCE = 1_000;
const CHECKPOINTS_AT_ONCE = 20;
/** How often a receipt is looked at again that does not fit: gateways write meanwhile. */
const MOST_LOOKS = 4;
/** Behind `receipt_` and its time: the same for receipts of one payment. */
const DRAWN_FROM = 'receipt_'.length + '00000000-0000-7'.length;

/**
 * The gateways may write meanwhile.
 * @throws StoreError; RangeError for a copy that is no checkpoint of these keys and this merchant
 */
export async function verifyReceiptLog(
  store: ReceiptLogStore,
  trust: LogTrust,
  { copies = [], sinceMs = 0 }: Verification = {},
): Promise<LogReport> {
  const taken = copies.map((jws) => readCopy(jws, trust));
  const log = new LogReading(store, trust, new Map(taken.map(({ number, jws }) => [number, jws])));
  // A version stands in the log before or with its receipt, so the log is read after the book.
  const present = await presentReceipts(store);
  await log.readOn();
  const book = new BookReading(log, present, sinceMs);
  let suspects = book.suspects();
  for (let looks = 0; suspects.length > 0 && looks < MOST_LOOKS; looks += 1) {
    await book.look(store, suspects);
    await log.readOn();
    suspects = book.suspects(suspects);
  }
  return log.report(book.findings(suspects), book.counts());
}

function readCopy(jws: string, { merchant, keys }: LogTrust): { readonly number: number; readonly jws: string } {
  const checkpoint = readCheckpoint(jws);
  if (checkpoint === undefined) throw new RangeError('is no checkpoint');
  if (checkpoint.merchant !== merchant) throw new RangeError(`is a checkpoint of ${checkpoint.merchant}`);
  if (!checkpointSignatures(keys)(jws)) throw new RangeError('is signed by none of the keys of this configuration');
  return { number: checkpoint.number, jws };
}

/** Receipt to the digest of its text; undefined where it is listed and not there. */
async function presentReceipts(store: ReceiptLogStore): Promise<Map<string, string | undefined>> {
  const present = new Map<string, string | undefined>();
  for (let than: string | undefined, more = true; more; ) {
    const page = await store.receipts(than, RECEIPTS_AT_ONCE);
    for (const { id, text } of page) present.set(id, text === undefined ? undefined : digestOf(text));
    than = page.at(-1)?.id;
    more = page.length === RECEIPTS_AT_ONCE;
  }
  return present;
}

/** What the log says that a receipt was at some time. */
interface Known {
  /** Where it first stood. */
  readonly place: Place;
  /** Where the line stands that says so: another place, where the version was carried. */
  readonly line: Place;
  /** Which line of which series. */
  readonly series: string;
  readonly number: number;
  readonly kind: ReceiptVersion['kind'];
  /** Undefined: not there. */
  readonly digest: string | undefined;
  readonly isOwed: boolean;
}

/** What the next checkpoint goes on from. */
type Link = Omit<NonNullable<Checkpoint['trimmed']>, 'position'>;

const BEGINNING: Link = { number: 0, digest: '', versions: 0 };

/** The log, as far as it was read. */
class LogReading {
  readonly #store: ReceiptLogStore;
  readonly #trust: LogTrust;
  readonly #isSigned: (jws: string) => boolean;
  readonly #copies: Map<number, string>;
  readonly #findings = new Map<string, LogFinding>();
  readonly #known = new Map<string, Known[]>();
  readonly #series = new Map<string, Pick<Checkpoint, 'to' | 'head'>>();
  readonly #outdated: number[] = [];
  /** Where the log began when it was first read. */
  #trimmedTo: Link = BEGINNING;
  /** The latest place of a line that was trimmed. */
  #trimmedPlace: Place | undefined;
  #link: Link | undefined;
  /** The beginning of a series may be missing. */
  #isTrimmed = false;
  #last: { readonly number: number; readonly jws: string } | undefined;
  #since = Number.POSITIVE_INFINITY;
  #checkpoints = 0;
  #sealed = 0;
  #waiting = 0;

  constructor(store: ReceiptLogStore, trust: LogTrust, copies: Map<number, string>) {
    this.#store = store;
    this.#trust = trust;
    this.#isSigned = checkpointSignatures(trust.keys);
    this.#copies = copies;
  }

  /** Since when receipts are logged, Unix milliseconds. */
  get since(): number {
    return this.#since;
  }

  get isEmpty(): boolean {
    return this.#last === undefined && this.#waiting === 0;
  }

  ids(): Iterable<string> {
    return this.#known.keys();
  }

  /** In no order. */
  versionsOf(id: string): readonly Known[] {
    return this.#known.get(id) ?? [];
  }

  /**
   * Whether a later version of the same receipt may be trimmed: lines are sealed, and so trimmed,
   * by series, and one that waited long is sealed after others that the store took after it.
   */
  isOvertaken({ line }: Known): boolean {
    return this.#trimmedPlace !== undefined && order(line, this.#trimmedPlace) < 0;
  }

  /** Reads what waits, and what was sealed since the last time. */
  async readOn(): Promise<void> {
    // In this order: a line that is sealed meanwhile is read twice, not missed.
    await this.#readWaiting();
    const bounds = await this.#store.bounds();
    if (bounds === undefined) return;
    if (this.#link === undefined) {
      this.#trimmedTo = await this.#trimmed(bounds.last);
      this.#link = this.#trimmedTo;
      this.#isTrimmed = this.#trimmedTo.number > 0;
    }
    for (let from = this.#link.number + 1; from <= bounds.last; from = this.#link.number + 1) {
      const page = await this.#store.sealed(from, Math.min(from + CHECKPOINTS_AT_ONCE - 1, bounds.last));
      for (const sealed of page) await this.#take(sealed);
      if (this.#link.number < from) await this.#skip(from, Math.min(from + CHECKPOINTS_AT_ONCE, bounds.last + 1));
    }
  }

  report(found: readonly LogFinding[], counts: Pick<LogReport, 'receipts' | 'dropped' | 'earlier'>): LogReport {
    const last = this.#last?.number ?? 0;
    for (const [number, jws] of this.#copies)
      if (number > last) this.#find('the log', `ends at checkpoint ${last}, and the copy is of checkpoint ${number}`);
      else if (number !== this.#trimmedTo.number) this.#outdated.push(number);
      else if (digestOf(jws) !== this.#trimmedTo.digest)
        this.#find('the log', 'has trimmed another checkpoint than the one that was copied');
    return {
      findings: [...this.#findings.values(), ...found],
      ...(this.#last === undefined ? {} : { last: this.#last }),
      outdated: this.#outdated,
      checkpoints: this.#checkpoints,
      versions: this.#sealed + this.#waiting,
      waiting: this.#waiting,
      ...counts,
    };
  }

  /** Each is told once, however often it is met. */
  #find(about: string, what: string): void {
    this.#findings.set(`${about} ${what}`, { about, what });
  }

  async #readWaiting(): Promise<void> {
    this.#waiting = 0;
    for (let after: string | undefined, more = true; more; ) {
      const page = await this.#store.waiting(after, LINES_AT_ONCE);
      for (const { position, line } of page) {
        const opened = this.#trust.codes.open(line);
        if (opened === undefined) this.#find('a waiting line', `no holder of the key wrote the one at ${position}`);
        else {
          this.#note(opened.series, position, opened.text);
          this.#since = Math.min(this.#since, beginningOf(opened.series));
        }
      }
      this.#waiting += page.length;
      after = page.at(-1)?.position;
      more = page.length === LINES_AT_ONCE;
    }
  }

  /** What the newest checkpoint says of what was trimmed. */
  async #trimmed(last: number): Promise<Link> {
    const [newest] = await this.#store.checkpoints(last, last);
    const trimmed = newest && readCheckpoint(newest.checkpoint)?.trimmed;
    if (trimmed !== undefined) this.#trimmedPlace = placeOf(trimmed.position);
    return trimmed ?? BEGINNING;
  }

  /** Checkpoints from `from` to before `next` are not there: trimmed meanwhile, or removed. */
  async #skip(from: number, next: number): Promise<void> {
    const trimmed = await this.#trimmed((await this.#store.bounds())?.last ?? 0);
    if (trimmed.number >= from) {
      this.#link = trimmed;
      this.#isTrimmed = true;
      this.#series.clear();
      return;
    }
    this.#find(`checkpoint ${from}`, next - from > 1 ? `and those up to ${next - 1} are not there` : 'is not there');
    this.#link = { number: next - 1, digest: '', versions: Number.NaN };
  }

  async #take({ number, checkpoint: jws, versions }: Sealed): Promise<void> {
    const about = `checkpoint ${number}`;
    if (number > (this.#link?.number ?? 0) + 1) await this.#skip((this.#link?.number ?? 0) + 1, number);
    const link = this.#link ?? BEGINNING;
    const checkpoint = readCheckpoint(jws);
    const digest = digestOf(jws);
    this.#checkpoints += 1;
    if (!this.#isSigned(jws)) this.#find(about, 'is not signed by a key of the gateway');
    const copy = this.#copies.get(number);
    this.#copies.delete(number);
    if (copy !== undefined && copy !== jws) this.#find(about, 'is not the one that was copied');
    this.#last = { number, jws };
    this.#link = { number, digest, versions: checkpoint?.versions ?? Number.NaN };
    const lines = versions.split('\n').slice(0, -1);
    this.#sealed += lines.length;
    if (checkpoint === undefined) {
      this.#find(about, 'cannot be read');
      return;
    }
    if (checkpoint.merchant !== this.#trust.merchant) this.#find(about, `is one of ${checkpoint.merchant}`);
    if (checkpoint.number !== number) this.#find(about, `stands in the place of ${checkpoint.number}`);
    if (checkpoint.previous !== link.digest && !(link.digest === '' && Number.isNaN(link.versions)))
      this.#find(about, 'does not follow the one before it');
    const { series, from, to, before, head } = checkpoint;
    for (const line of lines) this.#takeLine(about, series, line);
    const known = this.#series.get(series);
    const isNext = known === undefined ? from === 0 || this.#isTrimmed : known.to === from;
    if (!isNext || (known !== undefined && known.head !== before))
      this.#find(about, 'does not go on where its series was');
    if (to - from !== lines.length || headOf(before, versions) !== head)
      this.#find(about, `seals other versions than those there: one of the ${to - from} was changed, removed or moved`);
    if (!Number.isNaN(link.versions) && checkpoint.versions !== link.versions + to - from)
      this.#find(about, 'counts the versions wrongly');
    this.#series.set(series, { to, head });
    this.#since = Math.min(this.#since, Date.parse(checkpoint.since) || Number.POSITIVE_INFINITY);
  }

  #takeLine(about: string, series: string, line: string): void {
    const space = line.indexOf(' ');
    if (!this.#note(series, line.slice(0, space), line.slice(space + 1)))
      this.#find(about, 'has a version that is none');
  }

  /** False: it is no version. */
  #note(series: string, position: string, text: string): boolean {
    const version = readVersion(text);
    const line = placeOf(position);
    const place = version?.kind === 'carried' ? placeOf(version.position) : line;
    if (version === undefined || line === undefined || place === undefined) return false;
    const { number, kind } = version;
    const known = { place, line, series, number, kind };
    if ('ids' in version) for (const id of version.ids) this.#know(id, { ...known, digest: undefined, isOwed: false });
    else this.#know(version.id, { ...known, digest: version.digest, isOwed: version.isOwed });
    return true;
  }

  #know(id: string, known: Known): void {
    const versions = this.#known.get(id);
    if (versions === undefined) {
      this.#known.set(id, [known]);
      return;
    }
    // A line that comes again says nothing new: the receipt was this the first time.
    const same = versions.findIndex(({ series, number }) => series === known.series && number === known.number);
    if (same < 0) versions.push(known);
    else if (order(known.place, versions[same]?.place ?? known.place) < 0) versions[same] = known;
  }
}

/** The receipts of the book, beside what the log says of them. */
class BookReading {
  readonly #log: LogReading;
  readonly #present: Map<string, string | undefined>;
  /** When it was written, by its own word, Unix milliseconds; of those that were looked at. */
  readonly #written = new Map<string, number>();
  readonly #sinceMs: number;

  constructor(log: LogReading, present: Map<string, string | undefined>, sinceMs: number) {
    this.#log = log;
    this.#present = present;
    this.#sinceMs = sinceMs;
  }

  /** Receipts that do not fit; of all, or of some. */
  suspects(some?: readonly string[]): readonly string[] {
    const ids = some ?? new Set([...this.#present.keys(), ...this.#log.ids()]);
    const payments = this.#payments();
    return [...ids].filter((id) => this.#faultOf(id, payments) !== undefined);
  }

  /** Reads some receipts again. */
  async look(store: ReceiptLogStore, ids: readonly string[]): Promise<void> {
    for (let at = 0; at < ids.length; at += RECEIPTS_AT_ONCE) {
      const some = ids.slice(at, at + RECEIPTS_AT_ONCE);
      const texts = await store.receiptsOf(some);
      for (const id of some) {
        const text = texts.get(id);
        if (text === undefined) {
          this.#present.delete(id);
          continue;
        }
        this.#present.set(id, digestOf(text));
        this.#written.set(id, writtenAt(text));
      }
    }
  }

  findings(suspects: readonly string[]): readonly LogFinding[] {
    if (this.#log.isEmpty && this.#present.size > 0)
      return [
        {
          about: 'the log',
          what: `is empty beside ${this.#present.size} receipts: no gateway with signing has written yet, or it was removed`,
        },
      ];
    const payments = this.#payments();
    return suspects.map((id) => ({ about: id, what: this.#faultOf(id, payments) ?? '' }));
  }

  counts(): Pick<LogReport, 'receipts' | 'dropped' | 'earlier'> {
    let [dropped, earlier] = [0, 0];
    for (const id of this.#log.ids()) if (this.#present.get(id) === undefined) dropped += 1;
    for (const id of this.#present.keys()) if (this.#log.versionsOf(id).length === 0) earlier += 1;
    return { receipts: this.#present.size, dropped, earlier };
  }

  /** Of each payment with a receipt in the book, by its part of the id: the newest version. */
  #payments(): ReadonlyMap<string, Place> {
    const payments = new Map<string, Place>();
    for (const [id, digest] of this.#present) {
      const latest = latestOf(this.#log.versionsOf(id));
      const payment = id.slice(DRAWN_FROM);
      const known = payments.get(payment);
      if (latest === undefined || digest === undefined || latest.digest !== digest) continue;
      if (known === undefined || order(latest.place, known) > 0) payments.set(payment, latest.place);
    }
    return payments;
  }

  #faultOf(id: string, payments: ReadonlyMap<string, Place>): string | undefined {
    const digest = this.#present.get(id);
    const versions = this.#log.versionsOf(id);
    const latest = latestOf(versions);
    if (latest === undefined) return this.#isEarlier(id) ? undefined : 'is in the book, and no gateway wrote it';
    if (digest === latest.digest) return latest.kind === 'dropped' ? this.#wronglyDropped(versions) : undefined;
    if (digest === undefined) {
      // It gives way only to one of its payment that a gateway wrote after it.
      const other = payments.get(id.slice(DRAWN_FROM));
      return other !== undefined && order(other, latest.place) > 0
        ? undefined
        : 'was removed: the log has it and does not say it was dropped';
    }
    if (latest.digest === undefined) return 'was dropped, and is in the book again';
    return versions.some((version) => version.digest === digest)
      ? 'was put back to an earlier version'
      : 'was changed: no gateway wrote its present text';
  }

  /** The book drops nothing that is owed, unless another hand made it look delivered. */
  #wronglyDropped(versions: readonly Known[]): string | undefined {
    const last = latestOf(versions.filter(({ digest }) => digest !== undefined));
    if (last?.isOwed !== true || this.#log.isOvertaken(last)) return undefined;
    return 'was dropped as delivered, and no gateway had delivered it';
  }

  /** By its id, or by what it says itself: the time in an id of a payment is the buyer's. */
  #isEarlier(id: string): boolean {
    const since = Math.max(this.#log.since, this.#sinceMs);
    return idTime(id.slice('receipt_'.length)) < since || (this.#written.get(id) ?? since) < since;
  }
}

function latestOf(versions: readonly Known[]): Known | undefined {
  let latest = versions[0];
  for (const one of versions) if (latest !== undefined && order(one.place, latest.place) > 0) latest = one;
  return latest;
}

function beginningOf(series: string): number {
  return idTime(series.slice('series_'.length));
}

/** Of a UUIDv7, Unix milliseconds. */
function idTime(uuid: string): number {
  return Number.parseInt(`${uuid.slice(0, 8)}${uuid.slice(9, 13)}`, 16);
}

function writtenAt(text: string): number {
  try {
    const { at } = JSON.parse(text) as { readonly at?: unknown };
    return typeof at === 'string' ? Date.parse(at) : Number.NaN;
  } catch {
    return Number.NaN;
  }
}
