import { spendSteps } from './budget.ts';
import { compilePattern } from './linear.ts';

/** What the validator calls in the place of `RegExp`: linear, within the budget of the document.  @throws PatternRefusal */
export function linearRegExp(pattern: string): { test(text: string): boolean; toString(): string } {
  const { test, cost } = compilePattern(pattern);
  return {
    test(text) {
      spendSteps(cost(text.length));
      return test(text);
    },
    // The validator tells compiled patterns apart by their text.
    toString: () => pattern,
  };
}
