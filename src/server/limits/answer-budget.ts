/** Bounds the memory for answers that MCP and A2A put into a message as a whole. */

import { Limiter } from '../../limiter.ts';
import type { Time } from '../../time/time.ts';

/** How long an answer of a free call waits for memory before its call is refused, milliseconds. */
export const FREE_WAIT_MS = 2_000;
/** The same for a paid call: a third of the time that a reader may hold a backend back. */
export const PAID_WAIT_MS = 20_000;

/** Its places are bytes. */
export type AnswerBudget = Limiter;

/**
 * Each answer takes all its memory once, before its bytes are read, and no more while it holds
 * some, so no two can wait for each other. `atMost`: bytes at the same time.
 */
export function createAnswerBudget(atMost: number | (() => number), time?: Time): AnswerBudget {
  const waitMs = (rank: string): number => (rank === 'paid' ? PAID_WAIT_MS : FREE_WAIT_MS);
  return new Limiter({ most: atMost, ranks: ['paid', 'free'], waitMs, time });
}
