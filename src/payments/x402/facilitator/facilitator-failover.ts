/** The configured facilitators in order: one without a verdict is asked last for a while. */

import type { Facilitator } from './facilitator.ts';

/** How long a facilitator that gave no verdict is asked last, milliseconds. */
export const STEP_BACK_MS = 10_000;

/** One facilitator's turn within a call that all of them could answer. */
export interface Turn {
  readonly name: string;
  /** The time left is shared by this facilitator and those still to come. */
  ask<Answer extends { readonly kind: string }>(
    question: (facilitator: Facilitator, deadlineMs: number) => Promise<Answer>,
  ): Promise<Answer>;
}

/**
 * The configured facilitators in their order.
 * @param now Milliseconds of a monotonic clock.
 */
export function createFailover(facilitators: readonly Facilitator[], now: () => number = () => performance.now()) {
  const failedAt = new Map<Facilitator, number>();
  /** 0 for those that have not failed lately. */
  const steppedBack = (facilitator: Facilitator, at: number): number => {
    const failed = failedAt.get(facilitator);
    return failed === undefined || at - failed >= STEP_BACK_MS ? 0 : failed;
  };
  const inOrder = (at: number): readonly Facilitator[] =>
    facilitators.toSorted((a, b) => steppedBack(a, at) - steppedBack(b, at));

  return {
    /**
     * One turn for each, within `deadlineMs`, until the caller has a verdict and stops. A refusal
     * is a verdict and changes no order.
     */
    *turns(deadlineMs: number): Generator<Turn> {
      const ends = now() + deadlineMs;
      const order = inOrder(now());
      for (const [place, facilitator] of order.entries()) {
        if (place > 0 && ends - now() < 1) return;
        yield {
          name: facilitator.name,
          async ask(question) {
            const answer = await question(facilitator, (ends - now()) / (order.length - place));
            if (answer.kind === 'none') failedAt.set(facilitator, now());
            else failedAt.delete(facilitator);
            return answer;
          },
        };
      }
    },
    /** The causes of those that cannot serve `exact` on this network, and the number of all. */
    async faults(network: string) {
      const found = await Promise.all(
        facilitators.map(async (facilitator) => {
          const cause = await facilitator.fault(network);
          return cause === undefined ? [] : [`${facilitator.name}: ${cause}`];
        }),
      );
      return { causes: found.flat(), of: facilitators.length };
    },
    close: async () => {
      await Promise.all(facilitators.map((facilitator) => facilitator.close()));
    },
  };
}
