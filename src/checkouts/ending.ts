import type { Time } from '../time/time.ts';
import type { CheckoutClaims, Hold, SealedAnswer, UnknownEnd } from './claims.ts';
import type { ClaimWatch } from './idempotency.ts';

/** Writes down how attempts ended. A store that is away keeps nobody from the answer: the lease ends by itself. Nothing rejects. */
export interface Ending {
  /** `fenced`: another attempt took over, and its answer counts. `unstored`: it counts, but could not be kept. */
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
