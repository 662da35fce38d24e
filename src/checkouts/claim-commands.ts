/**
 * The commands of one keyed call to the store: repeated when their reply was lost, and reported to
 * the watch when the store refuses or loses the end of an attempt. machine.ts and attempts.ts use
 * it.
 */

import type { Time } from '../time/time.ts';
import type { CheckoutClaims, Claim, Claimed, Hold, SealedAnswer, UnknownEnd } from './claims.ts';
import type { ClaimWatch } from './idempotency.ts';
import { STORE_COMMAND_TIMEOUT_MS } from './leases.ts';

/** Before a claim goes out again, milliseconds: a broken connection is back by then. */
const CLAIM_PAUSE_MS = 200;
/** Before the second and the third try to keep an answer, milliseconds. */
const FINISH_PAUSES_MS = [250, 750] as const;

/** `sentAt`: of the monotonic clock; a lease that the claim began runs from no earlier moment. */
export type ClaimReply =
  | { readonly kind: 'answered'; readonly answer: Claimed; readonly sentAt: number }
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/**
 * Nothing rejects. While the store is away, the end of an attempt is lost and its answer still goes
 * out: the lease ends by itself.
 */
export interface ClaimCommands {
  claim(claim: Claim): Promise<ClaimReply>;
  /** `fenced`: another attempt took over, and its answer counts. `unstored`: this one counts. */
  finish(hold: Hold, answer: SealedAnswer): Promise<'kept' | 'fenced' | 'unstored'>;
  unknown(hold: Hold, end: UnknownEnd): Promise<void>;
  release(hold: Hold): Promise<void>;
}

export function createClaimCommands({
  claims,
  watch,
  time,
}: {
  readonly claims: CheckoutClaims;
  readonly watch: ClaimWatch;
  readonly time: Time;
}): ClaimCommands {
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
    async claim(claim) {
      const began = time.now();
      const reply = await send(claim, began);
      const left = time.now() + CLAIM_PAUSE_MS - began < STORE_COMMAND_TIMEOUT_MS;
      if (reply.kind === 'answered' || !left) return reply;
      await time.sleep(CLAIM_PAUSE_MS);
      // The store recognises the owner, so a claim whose reply was lost is not made twice.
      return send(claim, time.now());
    },
    async finish(hold, answer) {
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
    async unknown(hold, end) {
      watch.unknown(end.why);
      await once(() => claims.unknown(hold, end));
    },
    release: (hold) => once(() => claims.release(hold)),
  };
}
