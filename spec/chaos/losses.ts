import type { Evidence } from './goals.ts';
import type { ProofStory } from './story.ts';

/** What the power cuts can be blamed for: writes of the seconds that they took, and nothing else. */
export interface Losses {
  /**
   * Whether the whole record of a proof may be gone: it can have been made in a lost second, and its buyer had his last word before
   * the power was back. Who comes later makes it again from the chain.
   */
  mayHaveTaken(proof: ProofStory): boolean;
  /** Whether something was done in a lost second and done again, because nobody could know. Unix milliseconds. */
  mayHaveForgotten(times: readonly number[]): boolean;
  /** Whether all that was sent to the store at these moments, and not waited for, may be gone. Unix milliseconds. */
  mayHaveUndone(times: readonly number[]): boolean;
  /**
   * Whether the store was away at each of these moments, and a gateway was killed before or right after it was back: what it knew then
   * stands nowhere. Unix milliseconds.
   */
  mayHaveDiedUntold(times: readonly number[]): boolean;
}

/** From a write to what it allows, and from an answer to its write, at most, milliseconds. */
const SLACK_MS = 2_000;

/** Before the kill of the store, milliseconds: a write on its way to it. */
const ON_ITS_WAY_MS = 50;
/** After its return, at most, milliseconds: until a gateway has connected again and tried again. */
const NEXT_TRY_MS = 1_200;

export function lossesOf({ cuts, outages, deaths }: Pick<Evidence, 'cuts' | 'outages' | 'deaths'>): Losses {
  return {
    mayHaveTaken({ firstSentAt, answers, told }) {
      if (firstSentAt === undefined) return false;
      const lastAt = Math.max(...[...answers, ...told].map(({ at }) => at));
      return cuts.some(
        ({ sampledAt, killedAt }) => firstSentAt <= killedAt && lastAt >= sampledAt && lastAt <= killedAt + SLACK_MS,
      );
    },
    mayHaveDiedUntold: (times) =>
      times.every((at) =>
        outages.some(
          ({ from, until }) =>
            at >= from - ON_ITS_WAY_MS &&
            at <= until + NEXT_TRY_MS &&
            deaths.some((death) => death >= at - ON_ITS_WAY_MS && death <= until + NEXT_TRY_MS),
        ),
      ),
    mayHaveUndone: (times) =>
      times.every((at) =>
        cuts.some(({ sampledAt, killedAt }) => at >= sampledAt - SLACK_MS && at <= killedAt + SLACK_MS),
      ),
    mayHaveForgotten: (times) =>
      cuts.some(
        ({ sampledAt, killedAt }) =>
          times.some((at) => at >= sampledAt && at <= killedAt + SLACK_MS) && times.some((at) => at > killedAt),
      ),
  };
}
