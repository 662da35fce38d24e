/**
 * The owners of checkout sessions: a session belongs to the client that opened it, and does not
 * exist for others. The adapter asks before each call of a session; a create writes the owner of
 * its session.
 */

import type { Time } from '../time/time.ts';
import type { CheckoutClaims, Ownership, Owning } from './claim-table.ts';
import { ownershipNamesOf } from './names.ts';
import { type IdempotencySettings, unknownKeepMs } from './settings.ts';

/** Before a command goes out again, milliseconds: a broken connection is back by then. */
const PAUSE_MS = 200;
/**
 * The part of a session's time that may be over before a use begins the time anew, so that most
 * calls write nothing.
 */
const RENEWED_AFTER = 1 / 16;

/** Nothing here rejects. */
export interface Sessions {
  access(clientId: string, sessionId: string): Promise<Access>;
  /** Before the client gets the session: a client that knows a session must be able to use it. */
  open(clientId: string, sessionId: string): Promise<Opened>;
}

/** The access of a client to a session. */
export type Access =
  | { readonly kind: 'granted' }
  /** For this client there is none. `other`: it is another client's; `none`: no owner is known. */
  | { readonly kind: 'absent'; readonly whose: 'other' | 'none' }
  /** The store gave no answer, and the owner must not be guessed. */
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/** The result for a session that the backend opened. */
export type Opened =
  | { readonly kind: 'owned' }
  /** It is another client's, so this one must not see it. */
  | { readonly kind: 'foreign' }
  /** No client could ever use it: the store did not take its owner. */
  | { readonly kind: 'unavailable'; readonly cause: unknown };

interface SessionOptions {
  readonly claims: Pick<CheckoutClaims, 'own' | 'ownership'>;
  readonly settings: Pick<IdempotencySettings, 'secret' | 'retentionMs' | 'sessionKeepMs'>;
  readonly deploymentId: string;
  /**
   * Whether the backend is asked for a session without a known owner: a single client owns it;
   * among several clients a backend that checks `Agent-Commerce-Client` decides.
   */
  readonly servesUnknown: boolean;
  readonly time: Time;
}

export function createSessions({ claims, settings, deploymentId, servesUnknown, time }: SessionOptions): Sessions {
  // A repeated call must find its session, and so must one whose end is not known yet.
  const keepMs = ownerKeepMs(unknownKeepMs(settings.retentionMs) + settings.sessionKeepMs);
  const owningOf = (clientId: string, sessionId: string): Owning => {
    const { session, owner } = ownershipNamesOf(settings.secret, deploymentId, { clientId, sessionId });
    return { session, owner, keepMs };
  };
  /** Each command may be repeated. */
  const asked = async <Answer>(
    command: () => Promise<Answer>,
  ): Promise<{ readonly answer: Answer } | { readonly cause: unknown }> => {
    for (let again = false; ; again = true)
      try {
        return { answer: await command() };
      } catch (cause) {
        if (again) return { cause };
        await time.sleep(PAUSE_MS);
      }
  };
  return {
    async access(clientId, sessionId) {
      const found = await asked(() => claims.ownership(owningOf(clientId, sessionId)));
      if ('cause' in found) return servesUnknown ? { kind: 'granted' } : { kind: 'unavailable', cause: found.cause };
      if (found.answer === 'own' || (found.answer === 'none' && servesUnknown)) return { kind: 'granted' };
      return { kind: 'absent', whose: found.answer };
    },
    async open(clientId, sessionId) {
      const found = await asked(() => claims.own(owningOf(clientId, sessionId)));
      if ('cause' in found) return servesUnknown ? { kind: 'owned' } : { kind: 'unavailable', cause: found.cause };
      return { kind: found.answer ? 'owned' : 'foreign' };
    },
  };
}

/**
 * Whose a session is. `owner`: as the store knows the client. `ends`: from then on the record does
 * not count, milliseconds of the store's clock.
 */
export interface OwnerRecord {
  readonly owner: string;
  readonly ends: number;
}

/** `next` is the very object that was found where nothing is to be written. */
export interface OwnerOutcome<Answer> {
  readonly answer: Answer;
  readonly next: OwnerRecord | undefined;
}

/** Gives a session to its first owner; false for others, as long as the owner is remembered. */
export function ownSession(
  found: OwnerRecord | undefined,
  { owner, keepMs }: Owning,
  now: number,
): OwnerOutcome<boolean> {
  const record = livingOwner(found, now);
  if (record !== undefined && record.owner !== owner) return { answer: false, next: found };
  return { answer: true, next: { owner, ends: Math.max(record?.ends ?? 0, now + keepMs) } };
}

/** Whose a session is, as one client sees it; a use prolongs it. */
export function ownershipOf(
  found: OwnerRecord | undefined,
  { owner, keepMs }: Owning,
  now: number,
): OwnerOutcome<Ownership> {
  const record = livingOwner(found, now);
  if (record === undefined) return { answer: 'none', next: found };
  if (record.owner !== owner) return { answer: 'other', next: found };
  const fresh = record.ends - now >= keepMs * (1 - RENEWED_AFTER);
  return { answer: 'own', next: fresh ? found : { owner, ends: now + keepMs } };
}

function livingOwner(found: OwnerRecord | undefined, now: number): OwnerRecord | undefined {
  return found !== undefined && found.ends > now ? found : undefined;
}

/** How long a session is kept so that after each use at least `forMs` milliseconds are left. */
function ownerKeepMs(forMs: number): number {
  return Math.ceil(forMs / (1 - RENEWED_AFTER));
}
