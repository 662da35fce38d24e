import type { Time } from '../time/time.ts';
import type { CheckoutClaims, Ownership, Owning } from './claims.ts';
import { unknownKeepMs } from './leases.ts';
import { ownershipNamesOf } from './names.ts';
import type { IdempotencySettings } from './settings.ts';

/**
 * Whose a session is. `owner`: as the store knows the client. `ends`: from then on there is no such
 * record, milliseconds of its clock.
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

/**
 * A session becomes its first owner's, and stays his: false for everybody else, as long as he is
 * remembered. `session-own.lua` and `session-ownership.lua` are the twins of these two.
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

/**
 * How much of its time may be over before a use begins it anew: so most calls write nothing.
 * `session-ownership.lua` has the same.
 */
const WORN = 1 / 16;

/** How long a session is kept so that after each use at least `forMs` milliseconds are left. */
function ownerKeepMs(forMs: number): number {
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

/** What decides whose sessions are. */
interface SessionOptions {
  readonly claims: Pick<CheckoutClaims, 'own' | 'ownership'>;
  readonly settings: Pick<IdempotencySettings, 'secret' | 'retentionMs' | 'sessionKeepMs'>;
  readonly deploymentId: string;
  /**
   * Whether a session that nobody is known to own may be asked of the merchant: where there is one
   * client, it is his; where the merchant is told the client and looks at it, the merchant decides.
   */
  readonly servesUnknown: boolean;
  readonly time: Time;
}

/** What a client may do with a session. */
export type Access =
  | { readonly kind: 'granted' }
  /**
   * For this client there is no such session: `other`: it is another client's; `none`: it is not
   * known whose it is.
   */
  | { readonly kind: 'absent'; readonly whose: 'other' | 'none' }
  /** The store gave no answer, and it must not be guessed. */
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/** What came of a session that the merchant opened. */
export type Opened =
  | { readonly kind: 'owned' }
  /** It is another client's, so this one must not see it. */
  | { readonly kind: 'foreign' }
  /** Nobody could ever use it: the store did not take whose it is. */
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/**
 * Whose checkout sessions are. A session belongs to the client that opened it, and for others there
 * is none. Nothing here rejects.
 */
export interface Sessions {
  access(clientId: string, sessionId: string): Promise<Access>;
  /** Before the client hears of the session: who has heard of it must be able to use it. */
  open(clientId: string, sessionId: string): Promise<Opened>;
}

/** Before the second try, milliseconds: long enough for a connection that broke to be back. */
const PAUSE_MS = 200;

export function createSessions({ claims, settings, deploymentId, servesUnknown, time }: SessionOptions): Sessions {
  // A call that is given again must find its session, and so must one whose end is not known yet.
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
