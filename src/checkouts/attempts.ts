/**
 * Takes a granted claim to its end: reads the session back where an earlier attempt may have
 * happened, calls the backend, keeps the answer. machine.ts calls it for each granted claim; the
 * ACP adapter makes the calls to the backend (`Work`).
 */

import { channel } from 'node:diagnostics_channel';
import { createKeyRing, type SealingKeys } from '../crypto/seal.ts';
import type { Json } from '../json/json.ts';
import type { Time } from '../time/time.ts';
import {
  type CheckoutClaims,
  type Claim,
  type Claimed,
  type EarlierAttempt,
  type Hold,
  isRefusal,
  type SealedAnswer,
  type Unknown,
  type UnknownEnd,
} from './claim-table.ts';
import type { KeyedOperation } from './operations.ts';
import type { Opened } from './sessions.ts';
import {
  type IdempotencySettings,
  retryAfterS,
  STORE_COMMAND_TIMEOUT_MS,
  settleWindowMs,
  unknownKeepMs,
} from './settings.ts';

/** A call with a key: the parts that decide whether another call is the same. */
export interface KeyedCall {
  readonly clientId: string;
  readonly operation: KeyedOperation;
  /** Decoded; undefined for create. */
  readonly sessionId: string | undefined;
  /** As the caller sent it, trimmed. */
  readonly key: string;
  /** Parsed strictly; an absent body is `{}`. */
  readonly body: Json;
}

/** Calls the backend. Its promises never reject. */
export interface Work {
  attempt(attempt: Attempt): Promise<AttemptEnd>;
  /** Undefined for operations that move no money: they run again without it. */
  readonly readBack: (() => Promise<ReadBack>) | undefined;
}

/** One attempt at the backend. */
export interface Attempt {
  /**
   * The backend's idempotency key: the same over all attempts, pods, restarts and token changes.
   */
  readonly backendKey: string;
  /** 1 for the first. */
  readonly number: number;
}

/** The end of one attempt at the backend. */
export type AttemptEnd =
  /** A document, or a refusal below 500: it is kept. `opened`: the session that a create made. */
  | { readonly kind: 'answer'; readonly answer: FinalAnswer; readonly opened?: string }
  /** Certainly nothing happened: no byte was sent, or the backend turned the gateway away. */
  | { readonly kind: 'not_executed'; readonly failure: Error }
  /** It may have happened. */
  | { readonly kind: 'unknown'; readonly why: Unknown; readonly failure: Error };

/** An answer in its final bytes: they are kept, and sent again unchanged. */
export interface FinalAnswer {
  readonly status: number;
  readonly body: Uint8Array;
}

/** The trace in the session of an attempt whose end is unknown (acp 12.5). */
export type ReadBack =
  | { readonly kind: 'happened'; readonly answer: FinalAnswer }
  /** The backend works on it. */
  | { readonly kind: 'in_progress' }
  | { readonly kind: 'not_happened' }
  /** The session could not be read. */
  | { readonly kind: 'unreadable' };

/** How a call with a key ended. */
export type KeyedEnd =
  | {
      readonly kind: 'answered';
      readonly answer: FinalAnswer;
      /** `backend`: now. `kept`: sent again. `session`: found done when the session was read. */
      readonly from: 'backend' | 'kept' | 'session';
    }
  | { readonly kind: 'failed'; readonly failure: Error }
  /**
   * `in_flight`: an attempt of this key runs, or its end is not known yet. `session_busy`: one of
   * another key runs on the session, or may. `session_unknown`: none runs any more, but how it
   * ended is not known, and the session cannot be read.
   */
  | { readonly kind: 'in_flight' | 'session_busy' | 'session_unknown'; readonly retryAfterS: number }
  | { readonly kind: 'conflict' }
  /** The backend opened a session that is another client's. */
  | { readonly kind: 'foreign' }
  /**
   * The store gave no answer: the backend was not called, or opened a session whose owner could not
   * be written.
   */
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/** Values of the label `outcome` of `acg_checkout_claims_total`. */
export type ClaimOutcome = 'first' | 'again' | 'done' | 'in_flight' | 'session_busy' | 'conflict' | 'unavailable';

/** Receives what happens to claims. */
export interface ClaimWatch {
  claimed(outcome: ClaimOutcome): void;
  /** An attempt was found whose lease had ended. */
  leaseExpired(): void;
  unknown(why: Unknown): void;
  /** The end of an attempt was refused: another one had taken over. */
  fenced(): void;
  /**
   * The end of an attempt could not be stored; its answer goes out, and its lease ends by itself.
   */
  unstored(cause: unknown): void;
  /** A kept answer could not be opened. */
  unopened(): void;
  /** The backend opened a session that is another client's. */
  foreign(): void;
}

/** How often a lease that became too short is renewed before the call is given up. */
const RENEWALS = 2;
/** The time in which the attempt that took over is expected to answer, seconds. */
const FENCED_RETRY_S = 1;
/** The status by which a backend reports that the session or the key is at work. */
const CONFLICT = 409;
/** The backend answered, so no late effect follows; the answer does not count as the end. */
const ANSWERED: ReadonlySet<Unknown> = new Set(['status', 'invalid_document', 'unowned']);
/** The attempt runs no longer: the backend answered. */
const OVER: ReadonlySet<Unknown> = new Set([...ANSWERED, 'unopened']);
const NOTHING_TO_READ: ReadBack = { kind: 'not_happened' };

/** One call on its way through the machine. */
export interface Run {
  readonly operation: KeyedOperation;
  readonly claim: Claim;
  readonly backendKey: string;
  /** Of the backend, milliseconds. */
  readonly timeoutMs: number;
  readonly work: Work;
  /** Makes a session the caller's. */
  readonly own: (sessionId: string) => Promise<Opened>;
}

/** A claim that may call the backend. */
type Granted = Extract<Claimed, { readonly kind: 'granted' }>;

/** `lost`: the claim was lost before the backend was called, and this is the store's answer now. */
type AttemptResult = KeyedEnd | { readonly kind: 'lost'; readonly reply: ClaimReply };

interface AttemptTools {
  readonly commands: ReturnType<typeof createClaimCommands>;
  readonly seal: AnswerSeal;
  readonly watch: ClaimWatch;
  readonly time: Time;
  readonly settings: Pick<IdempotencySettings, 'merchant' | 'retentionMs'>;
  /** Of all operations, milliseconds. */
  readonly longestTimeoutMs: number;
}

/** `sentAt`: of the claim, by the monotonic clock. */
export type Attempts = (run: Run, granted: Granted, sentAt: number) => Promise<AttemptResult>;

export function createAttempts({ commands, seal, watch, time, settings, longestTimeoutMs }: AttemptTools): Attempts {
  const settleMs = settleWindowMs(longestTimeoutMs);
  const unknownMs = unknownKeepMs(settings.retentionMs);

  /**
   * Goes on after an earlier attempt that may have happened: for operations that move money, the
   * session shows whether it did (acp 12.5).
   */
  const resume = async (
    run: Run,
    granted: Granted,
    earlier: EarlierAttempt,
    sentAt: number,
  ): Promise<AttemptResult> => {
    const { operation, work } = run;
    if (work.readBack === undefined) return perform(run, granted, sentAt);
    const read = await work.readBack();
    passed('after_read', operation);
    const hold = holdOf(run.claim, granted);
    if (read.kind === 'happened') return conclude(run, hold, read.answer, 'session');
    if (read.kind !== 'in_progress' && mayRunAgain(operation, read.kind, earlier)) return perform(run, granted, sentAt);
    return wait(run, hold, earlier, read.kind);
  };

  const perform = async (run: Run, granted: Granted, sentAt: number): Promise<AttemptResult> => {
    const reply = await lostLease(run, granted, sentAt);
    if (reply !== undefined) return { kind: 'lost', reply };
    const { operation, work, backendKey } = run;
    const { fence, earlier } = granted;
    const hold = holdOf(run.claim, granted);
    passed('before_send', operation);
    const end = await work.attempt({ backendKey, number: fence });
    passed('after_merchant', operation);
    if (end.kind === 'answer') {
      const notOwned = end.opened === undefined ? undefined : await own(run, hold, end.opened);
      if (notOwned !== undefined) return notOwned;
      const doubtful = earlier !== undefined && isRefusal(end.answer.status);
      return doubtful ? refused(run, hold, earlier, end.answer) : conclude(run, hold, end.answer, 'backend');
    }
    if (end.kind === 'not_executed') await commands.release(hold);
    else await commands.unknown(hold, { why: end.why, keepMs: unknownMs });
    return { kind: 'failed', failure: end.failure };
  };

  /**
   * Renews a lease that is too short for the backend's whole time, so no attempt takes over while
   * it works. Undefined: the lease is long enough.
   */
  const lostLease = async (
    { claim, timeoutMs }: Run,
    granted: Granted,
    sentAt: number,
  ): Promise<ClaimReply | undefined> => {
    let since = sentAt;
    for (let renewals = 0; time.now() - since >= claim.leaseMs - timeoutMs; renewals += 1) {
      if (renewals === RENEWALS) {
        await commands.release(holdOf(claim, granted));
        return { kind: 'unavailable', cause: new Error('the store took longer than the lease lasts') };
      }
      const reply = await commands.claim(claim);
      if (reply.kind !== 'answered' || !isSameGrant(reply.answer, granted)) return reply;
      since = reply.sentAt;
    }
    return undefined;
  };

  /**
   * Stores the caller as the session's owner; undefined: done. The owner is stored before the
   * answer is kept: when the process dies in between, no caller knows the session, and the next
   * attempt of the key asks the backend again and stores the owner of the session that it gets.
   */
  const own = async (run: Run, hold: Hold, sessionId: string): Promise<KeyedEnd | undefined> => {
    const opened = await run.own(sessionId);
    passed('after_own', run.operation);
    if (opened.kind === 'owned') return undefined;
    await commands.unknown(hold, { why: 'unowned', keepMs: unknownMs });
    if (opened.kind === 'unavailable') return opened;
    watch.foreign();
    return opened;
  };

  /** A backend may refuse a second attempt because the first ended meanwhile, or still runs. */
  const refused = async (run: Run, hold: Hold, earlier: EarlierAttempt, answer: FinalAnswer): Promise<KeyedEnd> => {
    const read = (await run.work.readBack?.()) ?? NOTHING_TO_READ;
    if (read.kind === 'happened') return conclude(run, hold, read.answer, 'session');
    // The refusal of a backend that goes by keys covers the first attempt as well.
    const settled =
      read.kind === 'not_happened' || (read.kind === 'unreadable' && mayRunAgain(run.operation, read.kind, earlier));
    if (!settled) return wait(run, hold, earlier, read.kind);
    if (answer.status !== CONFLICT) return conclude(run, hold, answer, 'backend');
    // The caller gets the 409, but a kept 409 would hide the end of the first attempt.
    await commands.release(hold);
    return { kind: 'answered', answer, from: 'backend' };
  };

  /** Ends with an answer: it is kept before it goes out. */
  const conclude = async (
    { operation, claim: { name, fingerprint } }: Run,
    hold: Hold,
    answer: FinalAnswer,
    from: 'backend' | 'session',
  ): Promise<KeyedEnd> => {
    const { status, body } = answer;
    const sealed = seal.seal(body, { name, fingerprint, status });
    const kept = await commands.finish(hold, { status, sealed, keepMs: settings.retentionMs });
    passed('after_finish', operation);
    // The attempt that took over keeps its own answer, and all repetitions must get the same one.
    if (kept === 'fenced') return { kind: 'in_flight', retryAfterS: FENCED_RETRY_S };
    return { kind: 'answered', answer, from };
  };

  /** It is not known yet how the earlier attempt ended: the caller has to come again. */
  const wait = async (
    { operation, claim }: Run,
    hold: Hold,
    earlier: EarlierAttempt,
    read: Exclude<ReadBack['kind'], 'happened'>,
  ): Promise<KeyedEnd> => {
    // An attempt that has only read the session leaves the earlier one as it was, with its own key.
    // But where the backend works on the session now, the settle window begins anew.
    const anew = !earlier.otherKey || settings.merchant === 'read-back-only';
    if (read === 'in_progress' && anew) await commands.unknown(hold, { why: 'in_progress', keepMs: unknownMs });
    else await commands.release(hold);
    const leftMs = mustSettle(operation, earlier) ? settleMs - earlier.sinceMs : claim.leaseMs;
    return { kind: kindOfWait(earlier, read), retryAfterS: retryAfterS(earlier.sinceMs, leftMs) };
  };

  /** `session_busy` only while the backend reports another request, or may still work on it. */
  const kindOfWait = ({ otherKey, why, sinceMs }: EarlierAttempt, read: ReadBack['kind']) => {
    if (!otherKey) return 'in_flight';
    const mayRun = read === 'in_progress' || (!OVER.has(why) && sinceMs <= settleMs);
    return mayRun ? 'session_busy' : 'session_unknown';
  };

  /** Whether the operation may run once more, although the earlier attempt may have happened. */
  const mayRunAgain = (
    operation: KeyedOperation,
    read: 'not_happened' | 'unreadable',
    earlier: EarlierAttempt,
  ): boolean => {
    if (mustSettle(operation, earlier)) return read === 'not_happened' && earlier.sinceMs > settleMs;
    // With an unreadable session, only where the backend knows the earlier attempt by the same key,
    // and is not known to have ended it.
    const known = settings.merchant === 'derived-key' && !earlier.otherKey && earlier.why !== 'unopened';
    return read === 'not_happened' || known;
  };

  /**
   * Whether a late effect must be waited for: the backend cannot know the earlier attempt by this
   * key. After its answer there is no late effect.
   */
  const mustSettle = (operation: KeyedOperation, { otherKey, why }: EarlierAttempt): boolean =>
    (settings.merchant === 'read-back-only' && !ANSWERED.has(why)) ||
    // The earlier attempt had another key. Only a timeout shows that the backend takes longer than
    // its time, and only a second `completeCheckoutSession` could make a second order.
    (otherKey && why === 'timeout' && operation === 'completeCheckoutSession');

  return (run, granted, sentAt) =>
    granted.earlier === undefined ? perform(run, granted, sentAt) : resume(run, granted, granted.earlier, sentAt);
}

function holdOf({ name, lock, fingerprint, owner }: Claim, { fence }: Granted): Hold {
  return { name, lock, fingerprint, owner, fence };
}

/** Whether a renewed claim is still the same attempt, and knows as much of earlier ones. */
function isSameGrant(answer: Claimed, { fence, earlier }: Granted): boolean {
  if (answer.kind !== 'granted' || answer.fence !== fence) return false;
  return (answer.earlier === undefined) === (earlier === undefined);
}

/** The record that a sealed answer belongs to. The answer opens with no other record. */
interface AnswerContext {
  /** The record's name. */
  readonly name: string;
  readonly fingerprint: string;
  readonly status: number;
}

/** Kept answers as the store has them: base64url text that reveals nothing. */
interface AnswerSeal {
  seal(body: Uint8Array, context: AnswerContext): string;
  /** Undefined when no key opens it: the call was made, and its end counts as unknown. */
  open(sealed: string, context: AnswerContext): Uint8Array | undefined;
}

export function createAnswerSeal(keys: SealingKeys): AnswerSeal {
  // Sessions are repetitive text.
  const ring = createKeyRing(keys, { deflate: true });
  return {
    seal: (body, context) => ring.seal(body, partsOf(context)).toString('base64url'),
    open: (sealed, context) => ring.open(Buffer.from(sealed, 'base64url'), partsOf(context)),
  };
}

function partsOf({ name, fingerprint, status }: AnswerContext): readonly (string | number)[] {
  return [name, fingerprint, status];
}

/** The steps in order. Subscribers get each one in the same turn: `{ step, operation }`. */
export type CheckoutStep =
  | 'before_claim'
  | 'after_claim'
  /** The session was read back. */
  | 'after_read'
  | 'before_send'
  | 'after_merchant'
  /** The owner of the session that the backend opened is stored. */
  | 'after_own'
  | 'after_finish';

export const CHECKOUT_CHANNEL = 'acg.checkout';

const checkouts = channel(CHECKOUT_CHANNEL);

/** Publishes a step; costs a comparison without subscribers. */
export function passed(step: CheckoutStep, operation: KeyedOperation): void {
  if (checkouts.hasSubscribers) checkouts.publish({ step, operation });
}

/** Before a claim goes out again, milliseconds: a broken connection is back by then. */
const CLAIM_PAUSE_MS = 200;
/** Before the second and the third try to keep an answer, milliseconds. */
const FINISH_PAUSES_MS = [250, 750] as const;

/** `sentAt`: of the monotonic clock; a lease that the claim began runs from no earlier moment. */
export type ClaimReply =
  | { readonly kind: 'answered'; readonly answer: Claimed; readonly sentAt: number }
  | { readonly kind: 'unavailable'; readonly cause: unknown };

interface StoreOfClaims {
  readonly claims: CheckoutClaims;
  readonly watch: ClaimWatch;
  readonly time: Time;
}

/**
 * The commands of one keyed call to the store: repeated when their reply was lost, and reported to
 * the watch when the store refuses or loses the end of an attempt. Nothing rejects. While the store
 * is away, the end of an attempt is lost and its answer still goes out: the lease ends by itself.
 */
export function createClaimCommands({ claims, watch, time }: StoreOfClaims) {
  const send = async (claim: Claim, sentAt: number): Promise<ClaimReply> => {
    try {
      return { kind: 'answered', answer: await claims.claim(claim), sentAt };
    } catch (cause) {
      return { kind: 'unavailable', cause };
    }
  };

  const once = async (write: () => Promise<boolean>): Promise<void> => {
    try {
      if (!(await write())) watch.fenced();
    } catch (cause) {
      watch.unstored(cause);
    }
  };

  return {
    async claim(claim: Claim): Promise<ClaimReply> {
      const began = time.now();
      const reply = await send(claim, began);
      const left = time.now() + CLAIM_PAUSE_MS - began < STORE_COMMAND_TIMEOUT_MS;
      if (reply.kind === 'answered' || !left) return reply;
      await time.sleep(CLAIM_PAUSE_MS);
      // The store recognises the owner, so a claim whose reply was lost is not made twice.
      return send(claim, time.now());
    },
    /** `fenced`: another attempt took over, and its answer counts. `unstored`: this one counts. */
    async finish(hold: Hold, answer: SealedAnswer): Promise<'kept' | 'fenced' | 'unstored'> {
      for (const pause of [...FINISH_PAUSES_MS, undefined])
        try {
          if (await claims.finish(hold, answer)) return 'kept';
          watch.fenced();
          return 'fenced';
        } catch (cause) {
          if (pause === undefined) watch.unstored(cause);
          else await time.sleep(pause);
        }
      return 'unstored';
    },
    async unknown(hold: Hold, end: UnknownEnd): Promise<void> {
      watch.unknown(end.why);
      await once(() => claims.unknown(hold, end));
    },
    release: (hold: Hold) => once(() => claims.release(hold)),
  };
}
