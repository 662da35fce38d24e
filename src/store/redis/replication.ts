/** Runs scripts whose writes a replica must have before anything is built on them. */

import { StoreError } from '../port/store.ts';
import type { RedisClient } from './client.ts';
import { answered, redacted } from './failure.ts';
import { type Execution, operands, run, type Script } from './script.ts';

/** How many replicas must have a write, and how long they may take for it, milliseconds. */
const WANTED = 1;
const WAIT_MS = 100;
/** Replicas from which on writes wait: with only one, its loss would stop all payments. */
export const REPLICAS_TO_WAIT = 2;
/** Kinds of replies under which something was written. */
const WROTE: ReadonlySet<unknown> = new Set(['done', 'granted', 'reserved']);
/** The server did not execute it: it does not know the script, or another node has the key. */
const NOT_RUN = /^(NOSCRIPT|MOVED|ASK)\b/;

/**
 * Runs a script, and WAIT in the same pipeline, so that no reconnect comes between them. WAIT
 * counts the writes of its own connection, so a repeated command has to write something again:
 * `again` in the plan makes the script do that. WAIT blocks the connection: give it one of its own.
 * @throws StoreError also when the write was made and no replica has it
 */
export async function runReplicated(redis: RedisClient, script: Script, execution: Execution): Promise<unknown> {
  const guarded = { ...execution, plan: { ...execution.plan, again: true } };
  const first = await attempt(redis, script, guarded);
  if (first.kind === 'ran') return first.reply;
  // A single command follows a redirection and sends a script that the server does not know.
  await run(redis, script, guarded);
  const second = await attempt(redis, script, guarded);
  if (second.kind === 'ran') return second.reply;
  throw new StoreError(second.error);
}

async function attempt(
  redis: RedisClient,
  { sha }: Script,
  execution: Execution,
): Promise<{ readonly kind: 'ran'; readonly reply: unknown } | { readonly kind: 'not_run'; readonly error: Error }> {
  const pipeline = redis
    .pipeline()
    .evalsha(sha, execution.keys.length, ...operands(execution))
    .wait(WANTED, WAIT_MS);
  const ended = pipeline.exec().catch((thrown: unknown) => [[thrown, undefined]] as const);
  const results = await answered(ended, WAIT_MS);
  const [[error, reply] = [], [unwaited, replicas] = []] = results ?? [];
  if (error) {
    const cause = redacted(error);
    if (NOT_RUN.test(cause.message)) return { kind: 'not_run', error: cause };
    throw new StoreError(cause);
  }
  if (unwaited) throw new StoreError(redacted(unwaited));
  if (!WROTE.has(Array.isArray(reply) ? reply[0] : undefined)) return { kind: 'ran', reply };
  if (typeof replicas !== 'number' || replicas < WANTED) throw new StoreError(new Error('no replica has the write'));
  return { kind: 'ran', reply };
}
