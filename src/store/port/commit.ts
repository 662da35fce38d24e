/**
 * The one way to change a store: documents with versions, entries of sorted lists and events,
 * written together or not at all. A store knows nothing of what they hold; the tables of payments,
 * mandates and checkouts decide in TypeScript, once for every engine.
 */

import { randomBytes } from 'node:crypto';
import type { EventDraft } from '../../events/event.ts';
import { StoreError } from './store-error.ts';

/** A value under a key. `version` differs with each write. */
export interface Document {
  readonly version: string;
  readonly value: string;
  /** The object of the value, where this process wrote it: it need not be parsed. */
  readonly made?: object | undefined;
}

/** Documents as a store had them at one moment; undefined: there is none under the key. */
export type Documents = ReadonlyMap<string, Document | undefined>;

/** One document of a commit. Without `value` and `endMs` it only has to be as `expect` says. */
export interface DocumentChange {
  readonly key: string;
  /** The version that must be there; null: no document may be there; absent: not checked. */
  readonly expect?: string | null | undefined;
  /** The new value; null deletes. */
  readonly value?: string | Uint8Array | null | undefined;
  /** The object of the value; later decisions of this process get it with the document. */
  readonly made?: object | undefined;
  /** The version of a new value: `VERSION_LENGTH` characters that no other write has. */
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

/** Changes that become true together. */
export interface Commit {
  readonly documents: readonly DocumentChange[];
  readonly entries?: readonly EntryChange[];
  readonly events?: readonly EventDraft[];
  /** The commit is `early` before this time, milliseconds of the store's clock. */
  readonly notBefore?: number;
}

/**
 * `conflict`: a document was not as expected; `documents` has all those with an `expect`. `early`:
 * the store's clock is not what the decision assumed. Neither writes anything.
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

/** The port that each engine implements. All but `now` throw StoreError when there is no answer. */
export interface Commits {
  /** The store's clock as this process knows it, milliseconds. */
  now(): number;
  commit(commit: Commit, how: How): Promise<Committed>;
  /** Reads documents at one moment, and with them the clock. */
  read(keys: readonly string[]): Promise<Documents>;
  /** Reads a document whose value is bytes; undefined for others. */
  bytes(key: string): Promise<Uint8Array | undefined>;
  members(list: string, stretch: Stretch): Promise<readonly string[]>;
  size(list: string): Promise<number>;
}

/** Length of a version, ASCII characters. */
export const VERSION_LENGTH = 16;

/** Decisions of one transaction, at most. */
const MOST_DECISIONS = 64;
/** After so many conflicts the transactions of this process on the same key go one by one. */
const PATIENT_FOR = 2;
/** Documents that are remembered as this process wrote them last. */
const REMEMBERED = 1_024;

/** A document that a decision reads; undefined: there is none. */
export type Read = (key: string) => Document | undefined;

/** The outcome of a decision. Without `changes` nothing is written. */
export interface Decision<Answer> {
  readonly answer: Answer;
  readonly changes?: Changes;
}

/**
 * A commit that expects the documents as the decision read them. A document that it did not read is
 * written unchecked.
 */
export interface Changes extends Omit<Commit, 'documents'> {
  readonly documents: readonly Omit<DocumentChange, 'expect'>[];
  /** `now` unless given. */
  readonly how?: How;
}

/**
 * A pure function that may run several times. `now`: the store's clock, milliseconds. Reading a key
 * that was not guessed fetches it from the store and runs the function again.
 */
type Decide<Answer> = (read: Read, now: number) => Decision<Answer>;

/**
 * Runs one transaction. `guessed`: keys whose documents it assumes to be as this process wrote them
 * last, else absent; a right guess saves a round trip. `reads`: fetches these keys first, because
 * the store has documents that this process does not remember.
 * @throws StoreError, and what `decide` throws on documents that the store has
 */
export type Transact = <Answer>(guessed: readonly string[], decide: Decide<Answer>, reads?: 'reads') => Promise<Answer>;

/** A decision read a key that is not known yet. */
class Unread extends Error {
  readonly key: string;
  constructor(key: string) {
    super('a document was not read yet');
    this.key = key;
  }
}

export function createTransact(store: Commits): Transact {
  /** Documents as this process wrote them last. */
  const written = new Map<string, Document>();
  /** By key: the end of the last transaction that takes its turn there. */
  const turns = new Map<string, Promise<void>>();

  const remember = ({ documents }: Commit): void => {
    for (const { key, version, value, made } of documents) {
      if (value === undefined) continue;
      written.delete(key);
      if (made !== undefined && version !== undefined && typeof value === 'string')
        written.set(key, { version, value, made });
    }
    for (const key of written.keys()) {
      if (written.size <= REMEMBERED) return;
      written.delete(key);
    }
  };
  const turnOf = async (key: string): Promise<() => void> => {
    const before = turns.get(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    turns.set(key, promise);
    await before;
    return () => {
      if (turns.get(key) === promise) turns.delete(key);
      resolve();
    };
  };

  return async function transact(guessed, decide, reads) {
    const known = new Map<string, Document | undefined>();
    const refresh = async (): Promise<void> => {
      for (const [key, document] of await store.read([...known.keys()])) known.set(key, document);
    };
    const busy = guessed.find((key) => turns.has(key));
    let leave = busy === undefined ? undefined : await turnOf(busy);
    let isGuess = reads === undefined;
    let conflicts = 0;
    for (const key of guessed) known.set(key, written.get(key));
    try {
      if (!isGuess) await refresh();
      for (let decisions = 0; decisions < MOST_DECISIONS; decisions += 1) {
        const decision = decided(decide, known, store.now());
        if (decision instanceof Unread) known.set(decision.key, undefined);
        else if (decision.changes === undefined) {
          if (!isGuess) return decision.answer;
        } else {
          const { how = 'now', ...changes } = decision.changes;
          const commit = { ...changes, documents: expecting(changes.documents, known) };
          const committed = await store.commit(commit, how);
          if (committed.kind === 'done') {
            remember(commit);
            return decision.answer;
          }
          if (committed.kind === 'early') continue;
          const changed = changedIn(known, committed.documents);
          for (const [key, document] of committed.documents) known.set(key, document);
          isGuess = false;
          conflicts += 1;
          if (conflicts < PATIENT_FOR || leave !== undefined) continue;
          leave = await turnOf(changed);
        }
        await refresh();
        isGuess = false;
      }
      throw new StoreError(new Error(`no decision of ${MOST_DECISIONS} was in time`), false);
    } finally {
      leave?.();
    }
  };
}

/** The documents and entries of several changes as those of one. */
export function together(changes: readonly Partial<Changes>[]): Required<Pick<Changes, 'documents' | 'entries'>> {
  const all: { documents: Changes['documents'][number][]; entries: EntryChange[] } = { documents: [], entries: [] };
  for (const { documents, entries } of changes) {
    if (documents !== undefined) all.documents.push(...documents);
    if (entries !== undefined) all.entries.push(...entries);
  }
  return all;
}

/** The content of a document that is JSON. @throws StoreError that names a damaged one */
export function parsed<Content>(key: string, document: Document | undefined): Content | undefined {
  try {
    return document && ((document.made ?? JSON.parse(document.value)) as Content);
  } catch (cause) {
    throw new StoreError(new Error(`the document ${key} is no JSON`, { cause }));
  }
}

function decided<Answer>(decide: Decide<Answer>, known: Documents, now: number): Decision<Answer> | Unread {
  try {
    return decide((key) => {
      const document = known.get(key);
      if (document === undefined && !known.has(key)) throw new Unread(key);
      return document;
    }, now);
  } catch (thrown) {
    if (thrown instanceof Unread) return thrown;
    throw thrown;
  }
}

/** The documents of a commit: those to write, and checks of the others that were read. */
function expecting(changes: Changes['documents'], known: Documents): readonly DocumentChange[] {
  const documents: DocumentChange[] = [];
  for (const { key, value, endMs, made } of changes) {
    const expect = known.has(key) ? (known.get(key)?.version ?? null) : undefined;
    documents.push({
      key,
      expect,
      value,
      endMs,
      made,
      version: value === undefined || value === null ? undefined : newVersion(),
    });
  }
  for (const [key, document] of known)
    if (!changes.some((change) => change.key === key)) documents.push({ key, expect: document?.version ?? null });
  return documents;
}

function changedIn(known: Documents, now: Documents): string {
  for (const [key, document] of now) if (document?.version !== known.get(key)?.version) return key;
  return '';
}

/** The part of a version that names this process; the rest counts its writes. */
const RUN = randomBytes(6).toString('base64url');
let made = 0;

function newVersion(): string {
  made += 1;
  return RUN + made.toString(36).padStart(VERSION_LENGTH - RUN.length, '0');
}

/** Entries that one step drops. */
export const DROPPED_AT_ONCE = 100;

/**
 * Shares of the bound of a list, and of its room at the last count: a list is counted again after
 * so many new entries, because a count is slow in SQLite.
 */
const OF_BOUND = 0.01;
const OF_ROOM = 0.1;

interface BoundedList {
  /** Notes added entries, and drops some over the bound. Housekeeping repeats a failed drop. */
  added(entries: number): Promise<void>;
  /** Drops some entries over the bound; resolves with how many. @throws StoreError */
  trim(): Promise<number>;
}

/**
 * `by`: the order in which entries come first. `drop`: drops these members with all that belongs to
 * them, and resolves with how many.
 */
export function boundedList(
  store: Commits,
  list: string,
  most: number,
  by: Stretch['by'],
  drop: (members: readonly string[]) => Promise<number>,
): BoundedList {
  /** Entries that were added since the last step, and since the last count. */
  let since = { step: 0, count: 0 };
  /** Entries over the bound at the last count, less those dropped since; below 0: room. */
  let over = 0;
  const count = async (): Promise<void> => {
    since = { step: 0, count: 0 };
    over = (await store.size(list)) - most;
  };
  const step = async (): Promise<number> => {
    if (over <= 0) return 0;
    const limit = Math.min(over, DROPPED_AT_ONCE);
    over -= limit;
    return drop(await store.members(list, { by, limit }));
  };
  return {
    async added(entries) {
      since = { step: since.step + entries, count: since.count + entries };
      if (since.step < Math.min(DROPPED_AT_ONCE, most * OF_BOUND)) return;
      try {
        if (over <= 0 && since.count >= Math.max(most * OF_BOUND, -over * OF_ROOM)) await count();
        since.step = 0;
        await step();
      } catch {}
    },
    async trim() {
      await count();
      return step();
    },
  };
}
