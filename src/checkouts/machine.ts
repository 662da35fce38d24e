import { randomBytes } from 'node:crypto';
import type { Time } from '../time/time.ts';
import { createAttempts, type Run } from './attempts.ts';
import type { CheckoutClaims, Claim, Claimed } from './claims.ts';
import type { ClaimWatch, Idempotency, KeyedCall, KeyedEnd } from './idempotency.ts';
import { type CallNames, fingerprintOf, namesOf } from './names.ts';
import type { KeyedOperation } from './operations.ts';
import type { Sessions } from './sessions.ts';
import type { IdempotencySettings } from './settings.ts';
import { passed } from './steps.ts';
import {
  createAnswerSeal,
  createEnding,
  leaseFor,
  retryAfterS,
  type Taken,
  take,
  tell,
  unknownKeepMs,
} from './taking.ts';

/** What the machine works with. */
interface IdempotencyOptions {
  readonly claims: CheckoutClaims;
  readonly sessions: Pick<Sessions, 'open'>;
  readonly settings: IdempotencySettings;
  /** The merchant's id: two shops on one store share no claims. */
  readonly deploymentId: string;
  /** Longest wait for the merchant of all operations, milliseconds. */
  readonly longestTimeoutMs: number;
  readonly watch: ClaimWatch;
  readonly time: Time;
}

/**
 * Operations that move money, or end that they could: on one session they exclude one another,
 * whatever their keys are (acp 12.7).
 */
const EXCLUSIVE: ReadonlySet<KeyedOperation> = new Set(['completeCheckoutSession', 'cancelCheckoutSession']);
const OWNER_BYTES = 16;
/** How often a call asks the store anew when what it was told no longer holds. */
const ROUNDS = 3;

/**
 * The idempotency machine over the claims of a store (acp 12). Whoever has claimed calls the
 * merchant, and keeps the answer before it goes out; everybody else is told the kept answer, or to
 * come again. Nothing in here listens to the caller: a call that began is ended.
 */
export function createIdempotency(options: IdempotencyOptions): Idempotency {
  const { claims, sessions, settings, deploymentId, watch, time } = options;
  const ring = createAnswerSeal(settings.keys);
  const attempts = createAttempts({ ...options, ring, ending: createEnding(options) });

  const claimOf = (call: KeyedCall, { record, session }: CallNames, timeoutMs: number): Claim => ({
    name: record,
    lock: settings.sessionLock && EXCLUSIVE.has(call.operation) ? session : undefined,
    fingerprint: fingerprintOf(settings.secret, call.body),
    owner: randomBytes(OWNER_BYTES).toString('base64url'),
    leaseMs: leaseFor(timeoutMs),
    // An attempt that dies has an unknown end.
    keepMs: unknownKeepMs(settings.retentionMs),
  });

  /**
   * Does what the store's answer to a claim asks for. `rounds`: how often the store may be asked
   * anew.
   */
  const meet = async <Failure>(run: Run<Failure>, taken: Taken, rounds: number): Promise<KeyedEnd<Failure>> => {
    tell(watch, taken);
    if (taken.kind === 'unavailable') return taken;
    const { claimed, sentAt } = taken;
    switch (claimed.kind) {
      case 'conflict':
        return { kind: 'conflict' };
      case 'in_flight':
      case 'session_busy':
        return { kind: claimed.kind, retryAfterS: retryAfterS(claimed.ageMs, claimed.leftMs) };
      case 'done':
        return replay(run, claimed, rounds);
      default: {
        const result = await attempts(run, claimed, sentAt);
        return result.kind === 'taken' ? meetAgain(run, result.taken, rounds) : result;
      }
    }
  };

  const meetAgain = <Failure>(run: Run<Failure>, taken: Taken, rounds: number): Promise<KeyedEnd<Failure>> =>
    meet(run, rounds > 0 ? taken : GIVEN_UP, rounds - 1);

  const replay = async <Failure>(run: Run<Failure>, done: Done, rounds: number): Promise<KeyedEnd<Failure>> => {
    const { name, fingerprint } = run.claim;
    const { status, sealed } = done;
    const body = ring.open(sealed, { name, fingerprint, status });
    if (body !== undefined) return { kind: 'answered', answer: { status, body }, from: 'kept' };
    watch.unopened();
    // The call was made, only nobody can tell how it ended: from here on it counts as any other
    // unknown end, never as a new call.
    const claim = { ...run.claim, unopened: sealed };
    return meetAgain({ ...run, claim }, await take({ claims, time }, claim), rounds);
  };

  return {
    async run(call, timeoutMs, work) {
      const { operation } = call;
      const names = namesOf(settings.secret, deploymentId, call);
      const { merchantKey } = names;
      const claim = claimOf(call, names, timeoutMs);
      passed('before_claim', operation);
      const taken = await take({ claims, time }, claim);
      passed('after_claim', operation);
      const own = (sessionId: string) => sessions.open(call.clientId, sessionId);
      return meet({ operation, claim, merchantKey, timeoutMs, work, own }, taken, ROUNDS);
    },
  };
}

type Done = Extract<Claimed, { readonly kind: 'done' }>;

const GIVEN_UP: Taken = { kind: 'unavailable', cause: new Error('the claim changed hands too often') };
