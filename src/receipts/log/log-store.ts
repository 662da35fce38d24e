/** The port of the log of receipts: lines that wait to be sealed, and what is sealed. */

import type { ReceiptSeries } from './series.ts';

/** A line in the order in which the store took it. */
interface WaitingLine {
  /** `a-b`, two numbers: later lines have larger ones. */
  readonly position: string;
  /** When the store took it, milliseconds on its clock. */
  readonly atMs: number;
  readonly line: string;
}

export interface NumberedCheckpoint {
  /** From 1 on, over all series. */
  readonly number: number;
  /** A JWS. */
  readonly checkpoint: string;
}

/** A checkpoint and what it seals. */
export interface Sealed extends NumberedCheckpoint {
  /** Its versions, one a line, each after its position and a space. */
  readonly versions: string;
}

/** What goes with a checkpoint in one write. */
export interface Sealing {
  /** Lines that do not wait any more. */
  readonly positions: readonly string[];
  /** Everything sealed up to this number is dropped; 0: nothing is. */
  readonly trimmed: number;
  /** Of what is trimmed and still in the book: lines that wait now. */
  readonly carried: readonly CarriedLine[];
}

/** A line that is left out when its receipt has another text by now. */
export interface CarriedLine {
  readonly id: string;
  /** Of the receipt, as the line says. */
  readonly text: string;
  readonly line: string;
}

/** A receipt as it is stored; without a text it is listed and not there. */
export interface StoredReceipt {
  readonly id: string;
  readonly text: string | undefined;
}

/** Everything but `series` throws StoreError. */
export interface ReceiptLogStore {
  /** Whose lines go with the writes of this store. */
  readonly series: ReceiptSeries;
  /** Oldest first. `after`: a position. */
  waiting(after: string | undefined, limit: number): Promise<readonly WaitingLine[]>;
  /** Undefined: nothing was ever sealed. */
  bounds(): Promise<{ readonly first: number; readonly last: number } | undefined>;
  /** Those that are there, in order; both ends count. */
  sealed(from: number, to: number): Promise<readonly Sealed[]>;
  /** The same without the versions. */
  checkpoints(from: number, to: number): Promise<readonly NumberedCheckpoint[]>;
  /** Writes all or none. False: `sealed.number` is not the next one. */
  seal(sealed: Sealed, sealing: Sealing): Promise<boolean>;
  /** Receipts on the lists of the book, newest first. `than`: only older ones. */
  receipts(than: string | undefined, limit: number): Promise<readonly StoredReceipt[]>;
  /** Those of these ids that are in the book. */
  receiptsOf(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
}
