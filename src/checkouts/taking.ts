import { createKeyRing, type SealingKeys } from '../crypto/seal.ts';
import type { Time } from '../time/time.ts';
import type { CheckoutClaims, Claim, Claimed, Hold, SealedAnswer, UnknownEnd } from './claims.ts';
import type { ClaimOutcome, ClaimWatch } from './idempotency.ts';

/**
 * Writes down how attempts ended. A store that is away keeps nobody from the answer: the lease ends
 * by itself. Nothing rejects.
 */
export interface Ending {
  /**
   * `fenced`: another attempt took over, and its answer counts. `unstored`: it counts, but could
   * not be kept.
   */
  finish(hold: Hold, answer: SealedAnswer): Promise<'kept' | 'fenced' | 'unstored'>;
  unknown(hold: Hold, end: UnknownEnd): Promise<void>;
  release(hold: Hold): Promise<void>;
}

/** Pauses before the second and third try of an answer that must be kept, milliseconds. */
const PAUSES_MS = [250, 750] as const;

export function createEnding(options: {
  readonly claims: CheckoutClaims;
  readonly watch: ClaimWatch;
  readonly time: Time;
}): Ending {
  const { claims, watch, time } = options;

  const once = async (write: () => Promise<boolean>): Promise<void> => {
    try {
      if (!(await write())) watch.fenced();
    } catch (cause) {
      watch.unstored(cause);
    }
  };

  return {
    async finish(hold, answer) {
      for (const pause of [...PAUSES_MS, undefined])
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
    async unknown(hold, end) {
      watch.unknown(end.why);
      await once(() => claims.unknown(hold, end));
    },
    release: (hold) => once(() => claims.release(hold)),
  };
}

/**
 * After this long without an answer a command of the store has failed, milliseconds; both adapters
 * keep to it.
 */
const STORE_COMMAND_TIMEOUT_MS = 500;
/**
 * For the process itself, milliseconds: between the store's answer and the merchant's socket, and
 * back.
 */
const SLACK_MS = 2_000;
/**
 * How long an attempt whose end is unknown is remembered at least, milliseconds: as long as an
 * agent may come back to it.
 */
const SHORTEST_UNKNOWN_KEEP_MS = 7 * 24 * 60 * 60 * 1_000;
/**
 * How much longer than the longest operation a merchant may be at work on what was given up,
 * milliseconds.
 */
const SETTLE_MARGIN_MS = 30_000;

/**
 * How long an attempt has, milliseconds: the merchant's time, and that of the commands around it
 * (acp 12.4).
 */
export function leaseFor(timeoutMs: number): number {
  return timeoutMs + 2 * STORE_COMMAND_TIMEOUT_MS + SLACK_MS;
}

/**
 * How long an attempt whose end is unknown is remembered, milliseconds: never shorter than an
 * answer would be.
 */
export function unknownKeepMs(retentionMs: number): number {
  return Math.max(retentionMs, SHORTEST_UNKNOWN_KEEP_MS);
}

/**
 * How long after the beginning of an attempt with an unknown end its effect may still come,
 * milliseconds: for a merchant that looks at no key the operation does not run again before (acp
 * 12.5).
 */
export function settleWindowMs(longestTimeoutMs: number): number {
  return longestTimeoutMs + SETTLE_MARGIN_MS;
}

const MS = 1_000;

/**
 * When to ask again about something that runs, whole seconds: as long as it has run already, which
 * grows like a back-off, but not beyond its end. At least 1. `ageMs`: since it began; `leftMs`: how
 * long it may still take.
 */
export function retryAfterS(ageMs: number, leftMs: number): number {
  return Math.max(1, Math.min(Math.ceil(ageMs / MS), Math.ceil(leftMs / MS)));
}

/** What a sealed answer belongs to. It opens nowhere else. */
interface AnswerContext {
  /** The record's name. */
  readonly name: string;
  readonly fingerprint: string;
  readonly status: number;
}

/** Kept answers as the store has them: base64url text that tells nothing. */
export interface AnswerSeal {
  seal(body: Uint8Array, context: AnswerContext): string;
  /**
   * Undefined when it cannot be opened, whyever: then nobody knows the answer, but the call was
   * made.
   */
  open(sealed: string, context: AnswerContext): Uint8Array | undefined;
}

export function createAnswerSeal(keys: SealingKeys): AnswerSeal {
  // Sessions are text that repeats itself.
  const ring = createKeyRing(keys, { deflate: true });
  return {
    seal: (body, context) => ring.seal(body, partsOf(context)).toString('base64url'),
    open: (sealed, context) => ring.open(Buffer.from(sealed, 'base64url'), partsOf(context)),
  };
}

function partsOf({ name, fingerprint, status }: AnswerContext): readonly (string | number)[] {
  return [name, fingerprint, status];
}

/**
 * What a claim came to. `sentAt`: of the monotonic clock; a lease that it began runs from no
 * earlier moment.
 */
export type Taken =
  | { readonly kind: 'claimed'; readonly claimed: Claimed; readonly sentAt: number }
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/** Long enough for a connection that broke to be back, milliseconds. */
const PAUSE_MS = 200;

/**
 * Claims. A command whose reply was lost goes out once more while the time of one command lasts:
 * its owner is recognised, so it does no harm. Never rejects.
 */
export async function take(
  { claims, time }: { readonly claims: CheckoutClaims; readonly time: Time },
  claim: Claim,
): Promise<Taken> {
  const began = time.now();
  const first = await send(claims, claim, began);
  if (first.kind === 'claimed' || time.now() + PAUSE_MS - began >= STORE_COMMAND_TIMEOUT_MS) return first;
  await time.sleep(PAUSE_MS);
  return send(claims, claim, time.now());
}

async function send(claims: CheckoutClaims, claim: Claim, sentAt: number): Promise<Taken> {
  try {
    return { kind: 'claimed', claimed: await claims.claim(claim), sentAt };
  } catch (cause) {
    return { kind: 'unavailable', cause };
  }
}

/** Tells the watch what a call was met with. */
export function tell(watch: ClaimWatch, taken: Taken): void {
  const outcome: ClaimOutcome = taken.kind === 'claimed' ? taken.claimed.kind : taken.kind;
  watch.claimed(outcome);
  if (taken.kind === 'claimed' && taken.claimed.kind === 'again' && taken.claimed.why === 'lease_expired')
    watch.leaseExpired();
}
