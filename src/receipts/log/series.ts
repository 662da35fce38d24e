/**
 * The lines of the log of receipts: what one process wrote or dropped, with a code that only
 * holders of the signing key can make. A series is what one process writes in one run.
 */

import { hash, timingSafeEqual } from 'node:crypto';
import { hmacPads, hmacSha256 } from '../../crypto/hmac.ts';
import type { SigningKey } from '../../crypto/signing-key.ts';
import { uuidv7 } from '../../events/call-id.ts';

/**
 * What became of receipts. `written`: this text of it was. `carried`: the same, of a version that
 * was trimmed while its text was in the book; `position`: where it stood. `dropped`: over the
 * bounds of the book, which drops nothing that is owed. `withdrawn`: never paid. `digest`: SHA-256
 * of the stored bytes, base64url. `isOwed`: it was not delivered.
 */
export type ReceiptVersion = {
  /** Of the line in its series: a line that comes again says nothing new. */
  readonly number: number;
} & (
  | { readonly kind: 'written'; readonly id: string; readonly digest: string; readonly isOwed: boolean }
  | {
      readonly kind: 'carried';
      readonly id: string;
      readonly digest: string;
      readonly isOwed: boolean;
      readonly position: string;
    }
  | { readonly kind: 'dropped' | 'withdrawn'; readonly ids: readonly string[] }
);

type WrittenVersion = Extract<ReceiptVersion, { readonly kind: 'written' }>;

/** Makes the lines of one process. They are stored in the write that they tell of. */
export interface ReceiptSeries {
  /** `series_` + UUIDv7: when the process began, and random bits. */
  readonly id: string;
  /** A receipt is written. `text`: as it is stored. */
  written(receipt: { readonly id: string; readonly delivered: boolean }, text: string): string;
  /** At least one. */
  dropped(ids: readonly string[]): string;
  withdrawn(id: string): string;
  carried(version: Pick<WrittenVersion, 'id' | 'digest' | 'isOwed'>, position: string): string;
  /** Lines made so far of what was written or dropped. */
  made(): number;
}

/** A line of the log that holds no code any more, or not yet. */
export interface LogLine {
  readonly series: string;
  /**
   * `written NUMBER ID DIGEST`, `carried` with a position behind it, both with `owed` at the end
   * where it is; `dropped NUMBER ID …`, `withdrawn NUMBER ID`.
   */
  readonly text: string;
}

/** Makes and checks the codes of lines. */
export interface LineCodes {
  line(series: string, text: string): string;
  /** What a line says; undefined for one that no holder of the key made. */
  open(line: string): LogLine | undefined;
}

const PURPOSE = 'receipt-log';
const OWED = ' owed';
const CODE_BYTES = 16;
const LINE = /^(series_[0-9a-f-]{36}) ([A-Za-z0-9_-]{22}) (\S+ \S.*)$/;
const WRITTEN = /^written (\d{1,15}) (receipt_[0-9a-f-]{36}) ([A-Za-z0-9_-]{43})( owed)?$/;
const CARRIED = /^carried (\d{1,15}) (receipt_[0-9a-f-]{36}) ([A-Za-z0-9_-]{43}) (\d{1,15}-\d{1,15})( owed)?$/;
const GONE = /^(dropped|withdrawn) (\d{1,15})((?: receipt_[0-9a-f-]{36})+)$/;

/** SHA-256 of the UTF-8 of a text, base64url. */
export function digestOf(text: string): string {
  return hash('sha256', text, 'base64url');
}

export function lineCodes(key: Pick<SigningKey, 'secret'>): LineCodes {
  const pads = hmacPads(key.secret(PURPOSE));
  const codeOf = (series: string, text: string): Buffer =>
    hmacSha256(pads, Buffer.from(`${series} ${text}`, 'latin1')).subarray(0, CODE_BYTES);
  return {
    line: (series, text) => `${series} ${codeOf(series, text).toString('base64url')} ${text}`,
    open(line) {
      const [, series = '', code = '', text = ''] = LINE.exec(line) ?? [];
      if (series === '' || !timingSafeEqual(Buffer.from(code, 'base64url'), codeOf(series, text))) return undefined;
      return { series, text };
    },
  };
}

/** Begins the series of this process. */
export function openSeries(key: Pick<SigningKey, 'secret'>, nowMs: number = Date.now()): ReceiptSeries {
  const codes = lineCodes(key);
  const id = `series_${uuidv7(nowMs)}`;
  let [made, lines] = [0, 0];
  const line = (kind: ReceiptVersion['kind'], what: string): string => {
    lines += 1;
    return codes.line(id, `${kind} ${lines} ${what}`);
  };
  return {
    id,
    written(receipt, text) {
      made += 1;
      return line('written', `${receipt.id} ${digestOf(text)}${receipt.delivered ? '' : OWED}`);
    },
    dropped(receipts) {
      made += 1;
      return line('dropped', receipts.join(' '));
    },
    withdrawn(receipt) {
      made += 1;
      return line('withdrawn', receipt);
    },
    carried: ({ id: receipt, digest, isOwed }, position) =>
      line('carried', `${receipt} ${digest} ${position}${isOwed ? OWED : ''}`),
    made: () => made,
  };
}

/** Reads the text of a line; undefined for what is none. */
export function readVersion(text: string): ReceiptVersion | undefined {
  const [, number, id, digest, owed] = WRITTEN.exec(text) ?? [];
  if (id !== undefined && digest !== undefined)
    return { kind: 'written', number: Number(number), id, digest, isOwed: owed !== undefined };
  const [, again, kept, same, position, still] = CARRIED.exec(text) ?? [];
  if (kept !== undefined && same !== undefined && position !== undefined)
    return { kind: 'carried', number: Number(again), id: kept, digest: same, isOwed: still !== undefined, position };
  const [, how, gone, ids] = GONE.exec(text) ?? [];
  if (ids === undefined) return undefined;
  return {
    kind: how === 'dropped' ? 'dropped' : 'withdrawn',
    number: Number(gone),
    ids: ids.slice(1).split(' '),
  };
}
