import type { Time } from '../time/time.ts';
import { isRefusal } from './claim-table.ts';
import type { CheckoutClaims, Claim, Claimed, Hold, Unknown } from './claims.ts';
import type { ClaimWatch, FinalAnswer, KeyedEnd, ReadBack, Work } from './idempotency.ts';
import type { KeyedOperation } from './operations.ts';
import type { Opened } from './sessions.ts';
import type { IdempotencySettings } from './settings.ts';
import { passed } from './steps.ts';
import {
  type AnswerSeal,
  type Ending,
  retryAfterS,
  settleWindowMs,
  type Taken,
  take,
  unknownKeepMs,
} from './taking.ts';

/** One call on its way through the machine. */
export interface Run<Failure> {
  readonly operation: KeyedOperation;
  readonly claim: Claim;
  readonly merchantKey: string;
  /** The merchant's time, milliseconds. */
  readonly timeoutMs: number;
  readonly work: Work<Failure>;
  /** Makes a session the caller's. */
  readonly own: (sessionId: string) => Promise<Opened>;
}

/** A claim that may call the merchant. */
type Granted = Extract<Claimed, { readonly kind: 'first' | 'again' }>;

/**
 * What an attempt came to; `taken`: the claim was lost before the merchant was called, and this is
 * what the store says now.
 */
type AttemptResult<Failure> = KeyedEnd<Failure> | { readonly kind: 'taken'; readonly taken: Taken };

/** What attempts work with. */
interface AttemptTools {
  readonly claims: CheckoutClaims;
  readonly ending: Ending;
  readonly ring: AnswerSeal;
  readonly watch: ClaimWatch;
  readonly time: Time;
  readonly settings: Pick<IdempotencySettings, 'merchant' | 'retentionMs'>;
  /** Of all operations, milliseconds. */
  readonly longestTimeoutMs: number;
}

/** Takes a granted claim to its end. */
export type Attempts = <Failure>(
  run: Run<Failure>,
  granted: Granted,
  sentAt: number,
) => Promise<AttemptResult<Failure>>;

/** How often a lease that became too short is renewed before the call is given up. */
const RENEWALS = 2;
/** When whoever took over will have answered, seconds. */
const FENCED_RETRY_S = 1;
/** How a merchant says that the session, or the key, is at work for somebody else. */
const CONFLICT = 409;
/** Ends that the merchant told by itself, though not in a way that says what happened. */
const ANSWERED: ReadonlySet<Unknown> = new Set(['status', 'invalid_document', 'unowned']);
/** Ends of attempts that run no longer: the merchant answered, then or long ago. */
const OVER: ReadonlySet<Unknown> = new Set([...ANSWERED, 'unopened']);
const NOTHING_TO_READ: ReadBack = { kind: 'not_happened' };

export function createAttempts({
  claims,
  ending,
  ring,
  watch,
  time,
  settings,
  longestTimeoutMs,
}: AttemptTools): Attempts {
  const settleMs = settleWindowMs(longestTimeoutMs);
  const unknownMs = unknownKeepMs(settings.retentionMs);

  /** Ends with an answer: it is kept before anybody hears of it. */
  const conclude = async <Failure>(
    { operation, claim }: Run<Failure>,
    hold: Hold,
    answer: FinalAnswer,
    from: 'merchant' | 'session',
  ): Promise<KeyedEnd<Failure>> => {
    const { name, fingerprint } = claim;
    const { status, body } = answer;
    const sealed = ring.seal(body, { name, fingerprint, status });
    const kept = await ending.finish(hold, { status, sealed, keepMs: settings.retentionMs });
    passed('after_finish', operation);
    // Whoever took over keeps an answer of its own, and all repetitions must hear the same one.
    if (kept === 'fenced') return { kind: 'in_flight', retryAfterS: FENCED_RETRY_S };
    return { kind: 'answered', answer, from };
  };

  /**
   * Undefined: the session is the caller's. It becomes that before its answer is kept, so whoever
   * dies in between has opened nothing that anybody heard of: the next attempt of the key asks the
   * merchant again, and makes the session that comes its own.
   */
  const disowned = async <Failure>(
    run: Run<Failure>,
    hold: Hold,
    sessionId: string,
  ): Promise<KeyedEnd<Failure> | undefined> => {
    const opened = await run.own(sessionId);
    passed('after_own', run.operation);
    if (opened.kind === 'owned') return undefined;
    await ending.unknown(hold, { why: 'unowned', keepMs: unknownMs });
    if (opened.kind === 'unavailable') return opened;
    watch.foreign();
    return opened;
  };

  /**
   * Undefined: enough of the lease is left for the merchant's whole time, so nobody takes over
   * while it works.
   */
  const renewed = async <Failure>(
    { claim, timeoutMs }: Run<Failure>,
    { kind, token }: Granted,
    sentAt: number,
  ): Promise<Taken | undefined> => {
    let since = sentAt;
    for (let tries = 0; time.now() - since >= claim.leaseMs - timeoutMs; tries += 1) {
      if (tries === RENEWALS) {
        await ending.release(holdOf(claim, token));
        return { kind: 'unavailable', cause: new Error('the store took longer than the lease lasts') };
      }
      const taken = await take({ claims, time }, claim);
      if (taken.kind !== 'claimed' || taken.claimed.kind !== kind || taken.claimed.token !== token) return taken;
      since = taken.sentAt;
    }
    return undefined;
  };

  const perform = async <Failure>(
    run: Run<Failure>,
    granted: Granted,
    sentAt: number,
  ): Promise<AttemptResult<Failure>> => {
    const taken = await renewed(run, granted, sentAt);
    if (taken !== undefined) return { kind: 'taken', taken };
    const { operation, work, merchantKey } = run;
    const hold = holdOf(run.claim, granted.token);
    passed('before_send', operation);
    const end = await work.attempt({ merchantKey, number: granted.token });
    passed('after_merchant', operation);
    if (end.kind === 'answer') {
      const lost = end.opened === undefined ? undefined : await disowned(run, hold, end.opened);
      if (lost !== undefined) return lost;
      const doubtful = granted.kind === 'again' && isRefusal(end.answer.status);
      return doubtful ? refused(run, granted, end.answer) : conclude(run, hold, end.answer, 'merchant');
    }
    if (end.kind === 'not_executed') await ending.release(hold);
    else await ending.unknown(hold, { why: end.why, keepMs: unknownMs });
    return { kind: 'failed', failure: end.failure };
  };

  /**
   * What may come late has to be waited for where the merchant cannot know it by this key. What it
   * has answered comes no later.
   */
  const mustSettle = ({ operation }: Pick<Run<unknown>, 'operation'>, { other, why }: Again): boolean =>
    (settings.merchant === 'read-back-only' && !ANSWERED.has(why)) ||
    // Only a timeout shows that the merchant takes longer than its time, and only a second complete
    // could be a second order.
    (other && why === 'timeout' && operation === 'completeCheckoutSession');

  /**
   * Whether the operation may run once more, although an earlier attempt may have reached the
   * merchant.
   */
  const mayRunAgain = (
    run: Pick<Run<unknown>, 'operation'>,
    read: 'not_happened' | 'unreadable',
    again: Again,
  ): boolean => {
    if (mustSettle(run, again)) return read === 'not_happened' && again.sinceMs > settleMs;
    // Blindly only where the merchant knows the earlier attempt by the same key, and was never
    // known to have ended it.
    const known = settings.merchant === 'derived-key' && !again.other && again.why !== 'unopened';
    return read === 'not_happened' || known;
  };

  /**
   * That another request still runs is said only while the merchant says so, or may not have ended
   * it yet.
   */
  const kindOfWait = ({ other, why, sinceMs }: Again, read: ReadBack['kind']) => {
    if (!other) return 'in_flight';
    const mayRun = read === 'in_progress' || (!OVER.has(why) && sinceMs <= settleMs);
    return mayRun ? 'session_busy' : 'session_unknown';
  };

  /** Nobody knows yet how the earlier attempt ended, and the caller has to come again. */
  const wait = async <Failure>(
    run: Run<Failure>,
    again: Again,
    read: Exclude<ReadBack['kind'], 'happened'>,
  ): Promise<KeyedEnd<Failure>> => {
    const hold = holdOf(run.claim, again.token);
    // An attempt that has only read ends nothing: the earlier one counts as before, with its own
    // key. But where the merchant is at it now, what must settle begins anew.
    const anew = !again.other || settings.merchant === 'read-back-only';
    if (read === 'in_progress' && anew) await ending.unknown(hold, { why: 'in_progress', keepMs: unknownMs });
    else await ending.release(hold);
    const leftMs = mustSettle(run, again) ? settleMs - again.sinceMs : run.claim.leaseMs;
    return { kind: kindOfWait(again, read), retryAfterS: retryAfterS(again.sinceMs, leftMs) };
  };

  /**
   * A merchant may refuse a second attempt because of the first: that came to its end meanwhile, or
   * still runs.
   */
  const refused = async <Failure>(run: Run<Failure>, again: Again, answer: FinalAnswer): Promise<KeyedEnd<Failure>> => {
    const hold = holdOf(run.claim, again.token);
    const read = (await run.work.readBack?.()) ?? NOTHING_TO_READ;
    if (read.kind === 'happened') return conclude(run, hold, read.answer, 'session');
    // Where the merchant goes by keys, it speaks of the first attempt as well.
    const settled = read.kind === 'not_happened' || (read.kind === 'unreadable' && mayRunAgain(run, read.kind, again));
    if (!settled) return wait(run, again, read.kind);
    if (answer.status !== CONFLICT) return conclude(run, hold, answer, 'merchant');
    // It is told, but kept it would hide what the first attempt comes to.
    await ending.release(hold);
    return { kind: 'answered', answer, from: 'merchant' };
  };

  /** An earlier attempt may have happened: the session tells, where it moves money (acp 12.5). */
  const resume = async <Failure>(run: Run<Failure>, again: Again, sentAt: number): Promise<AttemptResult<Failure>> => {
    const { operation, claim, work } = run;
    if (work.readBack === undefined) return perform(run, again, sentAt);
    const read = await work.readBack();
    passed('after_read', operation);
    if (read.kind === 'happened') return conclude(run, holdOf(claim, again.token), read.answer, 'session');
    if (read.kind !== 'in_progress' && mayRunAgain(run, read.kind, again)) return perform(run, again, sentAt);
    return wait(run, again, read.kind);
  };

  return (run, granted, sentAt) =>
    granted.kind === 'first' ? perform(run, granted, sentAt) : resume(run, granted, sentAt);
}

type Again = Extract<Claimed, { readonly kind: 'again' }>;

function holdOf({ name, lock, fingerprint, owner }: Claim, token: number): Hold {
  return { name, lock, fingerprint, owner, token };
}
