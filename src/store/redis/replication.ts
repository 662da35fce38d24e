import { StoreError } from '../port/store.ts';
import type { RedisClient } from './client.ts';
import { answered, redacted } from './failure.ts';
import { type Execution, operands, run, type Script } from './script.ts';

/** How many replicas must have a write, and how long they may take for it, milliseconds. */
const WANTED = 1;
const WAIT_MS = 100;
/**
 * With so few a failover loses nothing that was acknowledged; with one replica its loss would stop
 * the sales.
 */
export const REPLICAS_TO_WAIT = 2;
/** Kinds of replies under which something was written. */
const WROTE: ReadonlySet<unknown> = new Set(['done', 'granted', 'reserved']);
/** The server did not execute it: it does not know the script, or another node has the key. */
const NOT_RUN = /^(NOSCRIPT|MOVED|ASK)\b/;

/**
 * Runs a script whose write must be on a replica before anything is built on it: WAIT follows in
 * the same pipeline, so that no reconnect can come between them. WAIT speaks of the writes of its
 * own connection, which is why a repeated command has to write something again; `again` in the plan
 * tells the script so. The connection stands still meanwhile: give it one of its own.
 * @throws StoreError also when the write was made and no replica has it
 */
export async function runReplicated(redis: RedisClient, script: Script, execution: Execution): Promise<unknown> {
  const guarded = { ...execution, plan: { ...execution.plan, again: true } };
  const first = await attempt(redis, script, guarded);
  if (first.kind === 'ran') return first.reply;
  // Whatever keeps the pipeline from it (a new primary, a forgotten script), a single command gets
  // over it.
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
