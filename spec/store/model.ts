import type { EventDraft } from '../../src/events/event.ts';
import type { Commit, Commits, Committed, Document, DocumentChange, Stretch } from '../../src/store/port/commit.ts';

interface Stored {
  readonly version: string;
  readonly value: string | Uint8Array;
  readonly endMs: number | undefined;
}

/** The port of commits over maps. */
export interface ModelCommits extends Commits {
  /** All events, oldest first. */
  readonly events: readonly EventDraft[];
  /** The keys of the documents that have not ended. */
  keys(): readonly string[];
  /** Writes a document past the port, as damage does. */
  put(key: string, value: string): void;
  /** The same as `commit` and `read`, at once. */
  make(commit: Commit): Committed;
  documentAt(key: string): Document | undefined;
}

/** An empty store. `now`: its clock, milliseconds. */
export function modelCommits(now: () => number): ModelCommits {
  const documents = new Map<string, Stored>();
  const lists = new Map<string, Map<string, number>>();
  const events: EventDraft[] = [];

  const stored = (key: string): Stored | undefined => {
    const found = documents.get(key);
    return found?.endMs !== undefined && found.endMs <= now() ? undefined : found;
  };
  const documentAt = (key: string): Document | undefined => {
    const found = stored(key);
    return found && { version: found.version, value: Buffer.from(found.value).toString() };
  };
  const write = ({ key, version = '', value, endMs }: DocumentChange): void => {
    if (value === null) documents.delete(key);
    else if (value !== undefined) documents.set(key, { version, value, endMs });
    else if (endMs !== undefined) {
      const found = stored(key);
      if (found !== undefined) documents.set(key, { ...found, endMs });
    }
  };
  const make = ({ documents: changes, entries = [], events: more = [], notBefore = 0 }: Commit): Committed => {
    if (now() < notBefore) return { kind: 'early' };
    const expected = changes.filter(({ expect }) => expect !== undefined);
    const found = new Map(expected.map(({ key }) => [key, documentAt(key)]));
    if (expected.some(({ key, expect }) => (found.get(key)?.version ?? null) !== expect))
      return { kind: 'conflict', documents: found };
    for (const change of changes) write(change);
    for (const { list, member, score } of entries) {
      const members = lists.get(list) ?? new Map<string, number>();
      lists.set(list, members);
      if (score === undefined) members.delete(member);
      else members.set(member, score);
    }
    events.push(...more);
    return { kind: 'done' };
  };
  return {
    events,
    now,
    keys: () => [...documents.keys()].filter((key) => stored(key) !== undefined),
    put: (key, value) => void documents.set(key, { version: 'damaged'.padEnd(16), value, endMs: undefined }),
    make,
    documentAt,
    commit: async (commit) => make(commit),
    read: async (keys) => new Map(keys.map((key) => [key, documentAt(key)])),
    bytes: async (key) => {
      const found = stored(key);
      return found && new Uint8Array(Buffer.from(found.value));
    },
    members: async (list, stretch) => {
      const { latest = false, offset = 0, limit } = stretch;
      const inOrder = [...(lists.get(list) ?? [])].filter(within(stretch)).sort(byScore);
      if (latest) inOrder.reverse();
      return inOrder.slice(offset, offset + limit).map(([member]) => member);
    },
    size: async (list) => lists.get(list)?.size ?? 0,
  };
}

type Entry = readonly [member: string, score: number];

function byScore([a, scoreOfA]: Entry, [b, scoreOfB]: Entry): number {
  return scoreOfA - scoreOfB || Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function within({ by, above, below }: Stretch): (entry: Entry) => boolean {
  if (by === 'member')
    return ([member]) =>
      (above === undefined || byScore([member, 0], [String(above), 0]) > 0) &&
      (below === undefined || byScore([member, 0], [String(below), 0]) < 0);
  return ([, score]) =>
    (above === undefined || score >= Number(above)) && (below === undefined || score <= Number(below));
}
