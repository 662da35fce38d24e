/** Measures what reaches a merchant through an entrance: what ran there without a payment. */

import type { Merchant } from './merchant.ts';
import { type Case, sendAll } from './send.ts';
import { METHODS, type Spelling } from './spellings.ts';

/** What some cases came to. */
export interface Outcome {
  readonly requests: number;
  /** Cases that came to the merchant. */
  readonly arrived: number;
  /** Cases in which something sold ran. */
  readonly executed: readonly Case[];
  /** Cases that were never answered. */
  readonly unanswered: readonly Case[];
}

/** Every spelling with every method. */
export function casesOf(spellings: readonly Spelling[], methods: readonly string[] = METHODS): readonly Case[] {
  return spellings.flatMap((spelling, at) =>
    methods.map((method, index) => ({ ...spelling, id: at * methods.length + index, method })),
  );
}

/** Sends the cases to a port, and says what ran at the merchant behind it. */
export async function measure(merchant: Merchant, port: number, cases: readonly Case[]): Promise<Outcome> {
  merchant.reset();
  const answers = await sendAll(port, cases);
  return {
    requests: cases.length,
    arrived: merchant.arrivals.size,
    executed: cases.filter(({ id }) => merchant.executed.has(id)),
    unanswered: cases.filter(({ id }) => (answers.get(id)?.status ?? 0) === 0),
  };
}

/** How a case is named in a report. */
export function caseText({ method, target, headers }: Case): string {
  const shown = target.length > 100 ? `${target.slice(0, 60)}…${target.slice(-30)}` : target;
  return `${method} ${JSON.stringify(shown)}${headers === undefined ? '' : ` ${JSON.stringify(headers)}`}`;
}
