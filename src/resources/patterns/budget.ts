/**
 * Bounds what the patterns and formats of one document cost together. One text under one pattern is
 * cheap, a thousand of them in one turn of the event loop are not. So every document has one budget
 * for all its texts, all branches of its schema and both validators.
 */

/** Steps that one document may take; they take about 25 ms. */
export const MATCH_BUDGET = 2_500_000;

/** The budget is spent. Thrown, because with "no match" `not` would accept an untried text. */
export class MatchBudgetError extends Error {}

/** Steps left for the document that is validated; without one each text has the whole budget. */
let left: number | undefined;

/** Gives `validate`, which is synchronous, the budget of one document. @throws MatchBudgetError */
export function withMatchBudget<T>(validate: () => T): T {
  const outer = left;
  left = MATCH_BUDGET;
  try {
    return validate();
  } finally {
    left = outer;
  }
}

/** Is called before the steps are taken. @throws MatchBudgetError */
export function spendSteps(steps: number): void {
  const after = (left ?? MATCH_BUDGET) - steps;
  if (left !== undefined) left = after;
  if (after < 0) throw new MatchBudgetError();
}
