import type { KeyedCall, KeyedEnd } from '../../../src/checkouts/idempotency.ts';

/** What must hold, whatever happens. */
export interface Laws {
  readonly violations: readonly string[];
  broken(what: string): void;
  /** A caller got an answer. */
  answered(call: KeyedCall, end: Extract<KeyedEnd<string>, { kind: 'answered' }>, ordered: boolean): void;
  /** The store took no end of an attempt: its answer could not be kept, so a later one may be another. */
  unstored(): void;
}

export function createLaws(): Laws {
  const violations: string[] = [];
  const answers = new Map<string, string>();
  let unstored = false;
  return {
    violations,
    broken: (what) => void violations.push(what),
    unstored() {
      unstored = true;
    },
    answered({ operation, sessionId, key }, { answer, from }, ordered) {
      // A conflict is told; whether it was kept as the answer to the key shows when it is given again.
      if (answer.status === 409 && from === 'merchant') return;
      const text = `${answer.status} ${Buffer.from(answer.body).toString('latin1')}`;
      const name = `${operation} ${sessionId} ${key}`;
      const before = answers.get(name) ?? text;
      answers.set(name, text);
      if (before !== text && !unstored) violations.push(`two answers to ${name}: ${before}; ${text} (${from})`);
      if (operation === 'completeCheckoutSession' && answer.status === 200 && !ordered)
        violations.push(`${name} is told of an order that is not there (${from})`);
    },
  };
}
