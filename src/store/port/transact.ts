/** Decides on documents and commits the decision; decides again when they changed meanwhile. */

import { randomBytes } from 'node:crypto';
import {
  type Commit,
  type Commits,
  type Document,
  type DocumentChange,
  type Documents,
  type EntryChange,
  type How,
  VERSION_LENGTH,
} from './commit.ts';
import { StoreError } from './store-error.ts';

/** Decisions of one transaction, at most. */
const MOST_DECISIONS = 64;
/** After so many conflicts the transactions of this process on the same key go one by one. */
const PATIENT_FOR = 2;
/** Documents that are remembered as this process wrote them last. */
const REMEMBERED = 1_024;

/** A document that a decision reads; undefined: there is none. */
export type Read = (key: string) => Document | undefined;

/** What a decision comes to. Without `changes` nothing is written. */
export interface Decision<Answer> {
  readonly answer: Answer;
  readonly changes?: Changes;
}

/**
 * A commit whose expectations are what was read. A document that was not read is written whatever
 * is there.
 */
export interface Changes extends Omit<Commit, 'documents'> {
  readonly documents: readonly Omit<DocumentChange, 'expect'>[];
  /** How it travels; `now` where nothing is said. */
  readonly how?: How;
}

/**
 * Pure, and may run several times. `now`: the store's clock, milliseconds. Reading a key that was
 * not guessed reads it from the store and decides anew.
 */
type Decide<Answer> = (read: Read, now: number) => Decision<Answer>;

/**
 * Runs one transaction. `guessed`: the keys of which a guess is worth it, that they are as this
 * process left them, and absent where it wrote none: a right guess saves a round trip. `reads`:
 * they are read first, because the store has documents that this process does not remember.
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

/** The documents of a commit: what is written, and guards for all others that were read. */
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

/** Of this process; the rest of a version counts its writes. */
const RUN = randomBytes(6).toString('base64url');
let made = 0;

function newVersion(): string {
  made += 1;
  return RUN + made.toString(36).padStart(VERSION_LENGTH - RUN.length, '0');
}
