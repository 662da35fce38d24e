import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { answered } from './failure.ts';

const PRELUDE = readFileSync(new URL('./prelude.lua', import.meta.url), 'utf8');

/** A script on the server. `plan` reaches it as one JSON document; all keys are declared. @throws StoreError */
export type Script = (redis: Redis, keys: readonly string[], plan: object) => Promise<unknown>;

const SOURCES: string[] = [];

/**
 * Teaches a server that just became ready all scripts. Without it the first use of each is sent twice, and a command that was sent
 * after it may overtake it: events would stand in the wrong order.
 */
export function loadScripts(redis: Redis): void {
  // A server that does not allow this still gets every script with its first use.
  for (const source of SOURCES) redis.script('LOAD', source).catch(() => undefined);
}

function script(body: string): Script {
  const source = `${PRELUDE}\n${body}`;
  const sha = createHash('sha1').update(source).digest('hex');
  SOURCES.push(source);
  return (redis, keys, plan) => answered(evaluate(redis, source, sha, keys, JSON.stringify(plan)));
}

async function evaluate(redis: Redis, source: string, sha: string, keys: readonly string[], plan: string) {
  try {
    return await redis.evalsha(sha, keys.length, ...keys, plan);
  } catch (thrown) {
    // A server that restarted has forgotten the script; nothing has run.
    if (!(thrown instanceof Error) || !thrown.message.startsWith('NOSCRIPT')) throw thrown;
    return redis.eval(source, keys.length, ...keys, plan);
  }
}

/** payment, open */
export const RESERVE = script(readFileSync(new URL('./reserve.lua', import.meta.url), 'utf8'));
/** payment, open, events, receipts, receipt index */
export const WRITE = script(readFileSync(new URL('./write.lua', import.meta.url), 'utf8'));
/** payment, open, events */
export const DISCARD = script(readFileSync(new URL('./discard.lua', import.meta.url), 'utf8'));
/** events, batch */
export const APPEND = script(readFileSync(new URL('./append.lua', import.meta.url), 'utf8'));
/** receipts, receipt index */
export const RECEIPT = script(readFileSync(new URL('./receipt.lua', import.meta.url), 'utf8'));
/** ready */
export const CHECK = script(readFileSync(new URL('./check.lua', import.meta.url), 'utf8'));
