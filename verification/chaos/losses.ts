/** Which writes the power cuts of a run took. */

import type { Evidence } from './goals.ts';
import type { ProofStory } from './story.ts';

/** What the power cuts excuse: writes of the lost seconds, and nothing else. */
export interface Losses {
  /**
   * Whether the whole record of a proof may be gone: it may have been made in a lost second, and
   * its buyer's last request came before the restart. A later request makes it again from the
   * chain.
   */
  mayHaveTaken(proof: ProofStory): boolean;
  /**
   * Whether something was done in a lost second and done again, because its record was lost. Unix
   * milliseconds.
   */
  mayHaveForgotten(times: readonly number[]): boolean;
  /**
   * Whether what the store had written before each of these answers left may be gone. It was
   * written after the request came; how late a busy machine reads the answer says nothing.
   */
  mayHaveUndone(answers: ProofStory['answers']): boolean;
}

/** From a write to what it allows, and from an answer to its write, at most, milliseconds. */
const SLACK_MS = 2_000;

export function lossesOf({ cuts }: Pick<Evidence, 'cuts'>): Losses {
  return {
    mayHaveTaken({ firstSentAt, lastSentAt, answers, refusals }) {
      if (firstSentAt === undefined || lastSentAt === undefined) return false;
      const lastAt = Math.max(...[...answers, ...refusals].map(({ at }) => at));
      return cuts.some(
        ({ sampledAt, killedAt }) =>
          firstSentAt <= killedAt && lastAt >= sampledAt && lastSentAt <= killedAt + SLACK_MS,
      );
    },
    mayHaveUndone: (answers) =>
      answers.every(({ sentAt, at }) => cuts.some(({ sampledAt, killedAt }) => at >= sampledAt && sentAt <= killedAt)),
    mayHaveForgotten: (times) =>
      cuts.some(
        ({ sampledAt, killedAt }) =>
          times.some((at) => at >= sampledAt && at <= killedAt + SLACK_MS) && times.some((at) => at > killedAt),
      ),
  };
}
