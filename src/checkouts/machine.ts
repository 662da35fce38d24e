/**
 * The idempotency machine of checkout calls (acp 12): claims the key in the store, then does what
 * the answer asks for. The ACP adapter runs every keyed call through it.
 */

import { randomBytes } from 'node:crypto';
import type { Time } from '../time/time.ts';
import {
  type ClaimOutcome,
  type ClaimReply,
  type ClaimWatch,
  createAnswerSeal,
  createAttempts,
  createClaimCommands,
  type KeyedCall,
  type KeyedEnd,
  passed,
  type Run,
  type Work,
} from './attempts.ts';
import type { CheckoutClaims, Claim, Claimed } from './claim-table.ts';
import { type CallNames, fingerprintOf, namesOf } from './names.ts';
import type { KeyedOperation } from './operations.ts';
import type { Sessions } from './sessions.ts';
import { type IdempotencySettings, leaseFor, retryAfterS, unknownKeepMs } from './settings.ts';

/** Operations that exclude one another on a session under any key: they move money (acp 12.7). */
const EXCLUSIVE: ReadonlySet<KeyedOperation> = new Set(['completeCheckoutSession', 'cancelCheckoutSession']);
const OWNER_BYTES = 16;
/** How often a call asks the store again when the first answer no longer holds. */
const ROUNDS = 3;
const GIVEN_UP: ClaimReply = { kind: 'unavailable', cause: new Error('the claim changed hands too often') };

interface IdempotencyOptions {
  readonly claims: CheckoutClaims;
  readonly sessions: Pick<Sessions, 'open'>;
  readonly settings: IdempotencySettings;
  /** The merchant's id: two merchants on one store share no claims. */
  readonly deploymentId: string;
  /** Longest wait for the backend of all operations, milliseconds. */
  readonly longestTimeoutMs: number;
  readonly watch: ClaimWatch;
  readonly time: Time;
}

/**
 * The attempt that holds the claim calls the backend, and keeps the answer before it goes out;
 * every other call gets the kept answer, or has to come again. A caller that leaves stops nothing:
 * a call that began goes on to its end.
 */
export function createIdempotency(options: IdempotencyOptions) {
  const { sessions, settings, deploymentId, watch } = options;
  const seal = createAnswerSeal(settings.keys);
  const commands = createClaimCommands(options);
  const attempts = createAttempts({ ...options, commands, seal });

  const claimOf = (call: KeyedCall, { record, session }: CallNames, timeoutMs: number): Claim => ({
    name: record,
    lock: settings.sessionLock && EXCLUSIVE.has(call.operation) ? session : undefined,
    fingerprint: fingerprintOf(settings.secret, call.body),
    owner: randomBytes(OWNER_BYTES).toString('base64url'),
    leaseMs: leaseFor(timeoutMs),
    // An attempt that dies has an unknown end.
    keepMs: unknownKeepMs(settings.retentionMs),
  });

  /** Does what the store's answer asks for. `rounds`: how often the store may be asked again. */
  const follow = async (run: Run, reply: ClaimReply, rounds: number): Promise<KeyedEnd> => {
    report(watch, reply);
    if (reply.kind === 'unavailable') return reply;
    const { answer, sentAt } = reply;
    switch (answer.kind) {
      case 'conflict':
        return { kind: 'conflict' };
      case 'in_flight':
      case 'session_busy':
        return { kind: answer.kind, retryAfterS: retryAfterS(answer.ageMs, answer.leaseLeftMs) };
      case 'completed':
        return replay(run, answer, rounds);
      case 'granted': {
        const result = await attempts(run, answer, sentAt);
        return result.kind === 'lost' ? followAgain(run, result.reply, rounds) : result;
      }
    }
  };

  const followAgain = (run: Run, reply: ClaimReply, rounds: number): Promise<KeyedEnd> =>
    follow(run, rounds > 0 ? reply : GIVEN_UP, rounds - 1);

  const replay = async (
    run: Run,
    { status, sealed }: Extract<Claimed, { readonly kind: 'completed' }>,
    rounds: number,
  ): Promise<KeyedEnd> => {
    const { name, fingerprint } = run.claim;
    const body = seal.open(sealed, { name, fingerprint, status });
    if (body !== undefined) return { kind: 'answered', answer: { status, body }, from: 'kept' };
    watch.unopened();
    // The call was made, and its end cannot be read: it counts as any other unknown end from here
    // on, never as a new call.
    const claim = { ...run.claim, unopened: sealed };
    return followAgain({ ...run, claim }, await commands.claim(claim), rounds);
  };

  return {
    async run(call: KeyedCall, timeoutMs: number, work: Work): Promise<KeyedEnd> {
      const { operation } = call;
      const names = namesOf(settings.secret, deploymentId, call);
      const { backendKey } = names;
      const claim = claimOf(call, names, timeoutMs);
      passed('before_claim', operation);
      const reply = await commands.claim(claim);
      passed('after_claim', operation);
      const own = (sessionId: string) => sessions.open(call.clientId, sessionId);
      return follow({ operation, claim, backendKey, timeoutMs, work, own }, reply, ROUNDS);
    },
  };
}

function report(watch: ClaimWatch, reply: ClaimReply): void {
  watch.claimed(reply.kind === 'answered' ? outcomeOf(reply.answer) : reply.kind);
  if (reply.kind !== 'answered' || reply.answer.kind !== 'granted') return;
  if (reply.answer.earlier?.why === 'lease_expired') watch.leaseExpired();
}

/** An answer in the words of the metric `acg_checkout_claims_total`, which are older. */
function outcomeOf(answer: Claimed): ClaimOutcome {
  switch (answer.kind) {
    case 'granted':
      return answer.earlier === undefined ? 'first' : 'again';
    case 'completed':
      return 'done';
    default:
      return answer.kind;
  }
}
