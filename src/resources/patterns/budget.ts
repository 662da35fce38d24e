/**
 * What the patterns and formats of one document may cost together. One text under one pattern is
 * short work; a thousand of them in one body are not, and all run in one turn of the process. So
 * every document that is validated has a budget, over all its texts, all branches of its schema and
 * both validators.
 */

/** Steps that one document may take: about 25 ms. */
export const MATCH_BUDGET = 2_500_000;

/** The budget is spent. Thrown, because "no match" would let `not` accept what was never tried. */
export class MatchBudgetError extends Error {}

/**
 * Steps that are left for the document being validated; outside of one each text has the whole
 * budget.
 */
let left: number | undefined;

/** Gives `validate`, which is synchronous, the budget of one document.  @throws MatchBudgetError */
export function withMatchBudget<T>(validate: () => T): T {
  const outer = left;
  left = MATCH_BUDGET;
  try {
    return validate();
  } finally {
    left = outer;
  }
}

/** To be called before the steps are taken.  @throws MatchBudgetError */
export function spendSteps(steps: number): void {
  const after = (left ?? MATCH_BUDGET) - steps;
  if (left !== undefined) left = after;
  if (after < 0) throw new MatchBudgetError();
}
