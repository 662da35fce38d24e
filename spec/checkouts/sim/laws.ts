import type { KeyedCall, KeyedEnd } from '../../../src/checkouts/idempotency.ts';

/** What must hold, whatever happens. */
export interface Laws {
  readonly violations: readonly string[];
  broken(what: string): void;
  /** A caller got an answer. */
  answered(call: KeyedCall, end: Extract<KeyedEnd<string>, { kind: 'answered' }>, ordered: boolean): void;
  /** A caller was told of a session that was opened for it. */
  opened(call: KeyedCall, sessionId: string): void;
  /** Every session that a caller was told of, and who that was. */
  readonly sessions: ReadonlyMap<string, string>;
  /**
   * The store took no end of an attempt: its answer could not be kept, so a later one may be
   * another.
   */
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
      // A conflict is told; whether it was kept as the answer to the key shows when it is given
      // again.
      if (answer.status === 409 && from === 'backend') return;
      const text = `${answer.status} ${Buffer.from(answer.body).toString('latin1')}`;
      const name = `${clientId} ${operation} ${sessionId} ${key}`;
      const before = answers.get(name) ?? text;
      answers.set(name, text);
      if (before !== text && !unstored) violations.push(`two answers to ${name}: ${before}; ${text} (${from})`);
      if (operation === 'completeCheckoutSession' && answer.status === 200 && !ordered)
        violations.push(`${name} is told of an order that is not there (${from})`);
    },
  };
}
