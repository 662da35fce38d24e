import type { Facilitator } from './facilitator.ts';

/** How long a facilitator that gave no verdict is asked after the others, milliseconds. */
export const STEP_BACK_MS = 10_000;

/** One facilitator's turn within a question that all of them could answer. */
export interface Turn {
  readonly name: string;
  /**
   * Puts the question; of the time left it gets one share for each facilitator still to come, and
   * for itself.
   */
  ask<Answer extends { readonly kind: string }>(
    question: (facilitator: Facilitator, deadlineMs: number) => Promise<Answer>,
  ): Promise<Answer>;
}

/** The configured facilitators in their order. */
interface FacilitatorFailover {
  /**
   * One turn for each, within `deadlineMs`, until the caller has a verdict and leaves. Who gave
   * none goes to the end of the line for a while; a refusal is a verdict and moves nobody.
   */
  turns(deadlineMs: number): Iterable<Turn>;
  /** Who cannot serve `exact` on this network: the causes, and how many there are to ask. */
  faults(network: string): Promise<{ readonly causes: readonly string[]; readonly of: number }>;
  close(): Promise<void>;
}

/** @param now Milliseconds of a monotonic clock. */
export function createFailover(
  facilitators: readonly Facilitator[],
  now: () => number = () => performance.now(),
): FacilitatorFailover {
  const failedAt = new Map<Facilitator, number>();
  /** 0 for those that are trusted to answer. */
  const steppedBack = (facilitator: Facilitator, at: number): number => {
    const failed = failedAt.get(facilitator);
    return failed === undefined || at - failed >= STEP_BACK_MS ? 0 : failed;
  };
  const inLine = (at: number): readonly Facilitator[] =>
    facilitators.toSorted((a, b) => steppedBack(a, at) - steppedBack(b, at));

  return {
    *turns(deadlineMs) {
      const ends = now() + deadlineMs;
      const order = inLine(now());
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
    async faults(network) {
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
