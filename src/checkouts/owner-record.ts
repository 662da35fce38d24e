import type { Ownership, Owning } from './claims.ts';

/** Whose a session is. `owner`: as the store knows the client. `ends`: from then on there is no such record, milliseconds of its clock. */
export interface OwnerRecord {
  readonly owner: string;
  readonly ends: number;
}

/** `next` is the very object that was found where nothing is to be written. */
export interface OwnerOutcome<Answer> {
  readonly answer: Answer;
  readonly next: OwnerRecord | undefined;
}

/**
 * A session becomes its first owner's, and stays his: false for everybody else, as long as he is remembered. `session-own.lua` and
 * `session-ownership.lua` are the twins of these two.
 */
export function ownSession(
  found: OwnerRecord | undefined,
  { owner, keepMs }: Owning,
  now: number,
): OwnerOutcome<boolean> {
  const record = livingOwner(found, now);
  if (record !== undefined && record.owner !== owner) return { answer: false, next: found };
  return { answer: true, next: { owner, ends: Math.max(record?.ends ?? 0, now + keepMs) } };
}

/** How much of its time may be over before a use begins it anew: so most calls write nothing. `session-ownership.lua` has the same. */
const WORN = 1 / 16;

/** How long a session is kept so that after each use at least `forMs` milliseconds are left. */
export function ownerKeepMs(forMs: number): number {
  return Math.ceil(forMs / (1 - WORN));
}

/** Whose it is, as one client sees it. What the client uses stays its own. */
export function ownershipOf(
  found: OwnerRecord | undefined,
  { owner, keepMs }: Owning,
  now: number,
): OwnerOutcome<Ownership> {
  const record = livingOwner(found, now);
  if (record === undefined) return { answer: 'none', next: found };
  if (record.owner !== owner) return { answer: 'other', next: found };
  const fresh = record.ends - now >= keepMs * (1 - WORN);
  return { answer: 'own', next: fresh ? found : { owner, ends: now + keepMs } };
}

function livingOwner(found: OwnerRecord | undefined, now: number): OwnerRecord | undefined {
  return found !== undefined && found.ends > now ? found : undefined;
}
