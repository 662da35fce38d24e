import type { KeyedCall, KeyedEnd } from '../../src/checkouts/idempotency.ts';

/** What must always hold. */
export interface Laws {
  readonly violations: readonly string[];
  broken(what: string): void;
  /** A caller got an answer. */
  answered(call: KeyedCall, end: Extract<KeyedEnd<string>, { kind: 'answered' }>, ordered: boolean): void;
  /** A caller got a session that was opened for it. */
  opened(call: KeyedCall, sessionId: string): void;
  /** Every session that a caller got, and its client. */
  readonly sessions: ReadonlyMap<string, string>;
  /** The store lost the end of an attempt: its answer is not kept, so a later one may differ. */
  unstored(): void;
}

export function createLaws(): Laws {
  const violations: string[] = [];
  const answers = new Map<string, string>();
  const sessions = new Map<string, string>();
  let unstored = false;
  return {
    violations,
    sessions,
    opened({ clientId }, sessionId) {
      const owner = sessions.get(sessionId) ?? clientId;
      sessions.set(sessionId, owner);
      if (owner !== clientId) violations.push(`${sessionId} of ${owner} was shown to ${clientId}`);
    },
    broken: (what) => void violations.push(what),
    unstored() {
      unstored = true;
    },
    answered({ clientId, operation, sessionId, key }, { answer, from }, ordered) {
      // A conflict goes out; whether it was kept as the answer shows when it is sent again.
      if (answer.status === 409 && from === 'backend') return;
      const text = `${answer.status} ${Buffer.from(answer.body).toString('latin1')}`;
      const name = `${clientId} ${operation} ${sessionId} ${key}`;
      const before = answers.get(name) ?? text;
      answers.set(name, text);
      if (before !== text && !unstored) violations.push(`two answers to ${name}: ${before}; ${text} (${from})`);
      if (operation === 'completeCheckoutSession' && answer.status === 200 && !ordered)
        violations.push(`${name} names an order that is not there (${from})`);
    },
  };
}
