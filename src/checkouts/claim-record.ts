import type { Hold, Unknown } from './claims.ts';

/** An attempt whose end is unknown. `since`: when it was claimed last, milliseconds. */
export interface OpenEnd {
  readonly why: Unknown;
  readonly since: number;
}

/** The youngest one on a session. `name`: the key that all of them belong to; undefined: several keys. */
export interface SessionEnd extends OpenEnd {
  readonly name: string | undefined;
}

/** The last attempt. Times: milliseconds of the store's clock. */
interface Attempted<State, End> {
  /** P: it runs. U: nobody knows. D: it is done. */
  readonly state: State;
  readonly owner: string;
  readonly token: number;
  /** When it was claimed last: the merchant is called after that. */
  readonly began: number;
  /** How long it has, while it runs. */
  readonly leaseEnd: number;
  /** What is unknown: in P of attempts before it, in U of any. */
  readonly open: End | undefined;
  /** From then on there is no such record. */
  readonly ends: number;
}

/** One key (acp 12.3). */
export interface ClaimRecord extends Attempted<'P' | 'U' | 'D', OpenEnd> {
  readonly fingerprint: string;
  /** In D. */
  readonly answer: { readonly status: number; readonly sealed: string } | undefined;
}

/** One session, held by the attempt of one key. There is none when nothing runs on it and every end is known. */
export interface LockRecord extends Attempted<'P' | 'U', SessionEnd> {
  readonly name: string;
}

/** What stands of a key and of its session; no lock when the operation has none. */
export interface Standing {
  readonly record: ClaimRecord | undefined;
  readonly lock: LockRecord | undefined;
}

/** What is not over yet. */
export function living<Kept extends ClaimRecord | LockRecord>(kept: Kept | undefined, now: number): Kept | undefined {
  return kept !== undefined && kept.ends > now ? kept : undefined;
}

/** Two ends of one session as one: the younger, and whether they belong to one key. */
export function joined(one: SessionEnd | undefined, other: SessionEnd): SessionEnd {
  if (one === undefined) return other;
  const { why, since } = one.since > other.since ? one : other;
  return { why, since, name: one.name === other.name ? one.name : undefined };
}

/** Of an attempt that the store knows nothing of any more: it counts as claimed now, and its lease as over. */
export function recordBegunBy({ fingerprint, owner, token }: Hold, now: number): ClaimRecord {
  return { ...begun, fingerprint, owner, token, began: now, leaseEnd: now, ends: now, answer: undefined };
}

/** Its session, which nobody else holds. */
export function lockBegunBy({ name, owner, token }: Hold, now: number): LockRecord {
  return { ...begun, name, owner, token, began: now, leaseEnd: now, ends: now };
}

const begun = { state: 'P', open: undefined } as const;
