/**
 * The one way to change a store: documents with versions, entries of sorted lists and events,
 * written together or not at all. A store knows nothing of what they hold; the tables of payments,
 * mandates and checkouts decide in TypeScript, once for every engine.
 */

import type { EventDraft } from '../../events/event.ts';

/** What is stored under a key. `version`: random, another one with each write. */
export interface Document {
  readonly version: string;
  readonly value: string;
  /** What the value was made of, where this process wrote it: it need not be read again. */
  readonly made?: object | undefined;
}

/** Documents as a store had them at one moment; undefined: there is none under the key. */
export type Documents = ReadonlyMap<string, Document | undefined>;

/** One document of a commit. Without `value` and `endMs` it only has to be as `expect` says. */
export interface DocumentChange {
  readonly key: string;
  /** The version that must be there, or null: none may be there. Absent: whatever is there. */
  readonly expect?: string | null | undefined;
  /** The new value; null deletes. */
  readonly value?: string | Uint8Array | null | undefined;
  /** What the value was made of; it comes with the document to later decisions of this process. */
  readonly made?: object | undefined;
  /** Of a new value: `VERSION_LENGTH` characters that no other write has. */
  readonly version?: string | undefined;
  /** When it ends, milliseconds of the store's clock; without `value` it changes the end alone. */
  readonly endMs?: number | undefined;
}

/** One entry of a list, which orders its members by score, and those of one score by bytes. */
export interface EntryChange {
  readonly list: string;
  readonly member: string;
  /** Absent: the entry is removed. 0: the entry is found by its member alone. */
  readonly score?: number;
}

/** Everything that becomes true together. */
export interface Commit {
  readonly documents: readonly DocumentChange[];
  readonly entries?: readonly EntryChange[];
  readonly events?: readonly EventDraft[];
  /** The decision holds only from then on, milliseconds of the store's clock. */
  readonly notBefore?: number;
}

/**
 * `conflict`: a document was not as expected; all that were expected as something are in it.
 * `early`: the store's clock is not what the decision assumed. Nothing was written in both cases.
 */
export type Committed =
  | { readonly kind: 'done' }
  | { readonly kind: 'conflict'; readonly documents: Documents }
  | { readonly kind: 'early' };

/**
 * How a commit travels. `later`: waits up to 10 ms for others. `replicated`: a replica has it when
 * it is done, where the store has enough of them.
 */
export type How = 'now' | 'later' | 'replicated';

/** A stretch of a list. Bounds of members are exclusive, those of scores are not. */
export interface Stretch {
  readonly by: 'member' | 'score';
  readonly above?: string | number;
  readonly below?: string | number;
  /** From the highest down. */
  readonly latest?: boolean;
  readonly offset?: number;
  readonly limit: number;
}

/** The port that each engine implements. Everything throws StoreError when there is no answer. */
export interface Commits {
  /** The store's clock as this process knows it, milliseconds. */
  now(): number;
  commit(commit: Commit, how: How): Promise<Committed>;
  /** Reads documents at one moment, and with them the clock. */
  read(keys: readonly string[]): Promise<Documents>;
  /** The value of a document that is no text. */
  bytes(key: string): Promise<Uint8Array | undefined>;
  members(list: string, stretch: Stretch): Promise<readonly string[]>;
  size(list: string): Promise<number>;
}

/** Length of a version, ASCII characters. */
export const VERSION_LENGTH = 16;
