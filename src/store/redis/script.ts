/** The Lua scripts of the store, each with the keys that it takes, and how they are run. */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Cluster } from 'ioredis';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';

// Shared by all scripts, and by those that use mandates, claim checkouts, write receipts or change
// payments.
const PRELUDE = readFileSync(new URL('./scripts/prelude.lua', import.meta.url), 'utf8');
const MANDATES = readFileSync(new URL('./scripts/mandates.lua', import.meta.url), 'utf8');
const CHECKOUTS = readFileSync(new URL('./scripts/checkouts.lua', import.meta.url), 'utf8');
const BOOK = readFileSync(new URL('./scripts/book.lua', import.meta.url), 'utf8');
const CHANGE = readFileSync(new URL('./scripts/change.lua', import.meta.url), 'utf8');

/** A script, and the digest by which a server knows it. */
export interface Script {
  readonly source: string;
  readonly sha: string;
}

/** One execution. `plan` reaches the script as one JSON document, `rest` as it is. */
export interface Execution {
  readonly keys: readonly string[];
  readonly plan: object;
  readonly rest?: readonly (string | Buffer)[];
}

const SCRIPTS: Script[] = [];

function script(body: string): Script {
  const source = `${PRELUDE}\n${body}`;
  const made = { source, sha: createHash('sha1').update(source).digest('hex') };
  SCRIPTS.push(made);
  return made;
}

/** payment, open, refusals, with a mandate the register (4), and with an issued token its key */
export const RESERVE = script(MANDATES + readFileSync(new URL('./scripts/reserve.lua', import.meta.url), 'utf8'));
/** open, events, book (6), register (4), payment, kept answer */
export const WRITE = script(
  MANDATES + BOOK + CHANGE + readFileSync(new URL('./scripts/write.lua', import.meta.url), 'utf8'),
);
/** open, events, book (6), register (4), and a payment and its kept answer for each */
export const WRITES = script(
  MANDATES + BOOK + CHANGE + readFileSync(new URL('./scripts/writes.lua', import.meta.url), 'utf8'),
);
/** payment, open */
export const RENEW = script(readFileSync(new URL('./scripts/renew.lua', import.meta.url), 'utf8'));
/** open */
export const DUE = script(readFileSync(new URL('./scripts/due.lua', import.meta.url), 'utf8'));
/** payments */
export const CENSUS = script(readFileSync(new URL('./scripts/census.lua', import.meta.url), 'utf8'));
/** payment, the list that has it */
export const FORGET = script(readFileSync(new URL('./scripts/forget.lua', import.meta.url), 'utf8'));
/** payment, open, events, refusals, their ends, register (4) */
export const DISCARD = script(MANDATES + readFileSync(new URL('./scripts/discard.lua', import.meta.url), 'utf8'));
/** events, batch */
export const APPEND = script(readFileSync(new URL('./scripts/append.lua', import.meta.url), 'utf8'));
/** book (6) */
export const RECEIPT = script(BOOK + readFileSync(new URL('./scripts/receipt.lua', import.meta.url), 'utf8'));
/** receipts, and the sorted sets to read */
export const RECEIPT_PAGE = script(readFileSync(new URL('./scripts/receipt-page.lua', import.meta.url), 'utf8'));
/** book (6) */
export const TIDY = script(BOOK + readFileSync(new URL('./scripts/tidy.lua', import.meta.url), 'utf8'));
/** for each holder its calls under way and its unpaid ones */
export const WORK = script(readFileSync(new URL('./scripts/work.lua', import.meta.url), 'utf8'));
/** held claims, their ends, register (4) */
export const HOLD = script(MANDATES + readFileSync(new URL('./scripts/hold.lua', import.meta.url), 'utf8'));
/** held claims, their ends, register (4) */
export const FINISH = script(MANDATES + readFileSync(new URL('./scripts/finish.lua', import.meta.url), 'utf8'));
/** claim, and with a session its lock */
export const CHECKOUT_CLAIM = script(
  CHECKOUTS + readFileSync(new URL('./scripts/checkout-claim.lua', import.meta.url), 'utf8'),
);
/** claim, and with a session its lock */
export const CHECKOUT_FINISH = script(
  CHECKOUTS + readFileSync(new URL('./scripts/checkout-finish.lua', import.meta.url), 'utf8'),
);
/** claim, and with a session its lock */
export const CHECKOUT_UNKNOWN = script(
  CHECKOUTS + readFileSync(new URL('./scripts/checkout-unknown.lua', import.meta.url), 'utf8'),
);
/** claim, and with a session its lock */
export const CHECKOUT_RELEASE = script(
  CHECKOUTS + readFileSync(new URL('./scripts/checkout-release.lua', import.meta.url), 'utf8'),
);
/** owner of a session */
export const SESSION_OWN = script(readFileSync(new URL('./scripts/session-own.lua', import.meta.url), 'utf8'));
/** owner of a session */
export const SESSION_OWNERSHIP = script(
  readFileSync(new URL('./scripts/session-ownership.lua', import.meta.url), 'utf8'),
);
/** ready, register (4) */
export const CHECK = script(MANDATES + readFileSync(new URL('./scripts/check.lua', import.meta.url), 'utf8'));

/**
 * Loads all scripts into the servers. Without it the first use of each is sent twice, and a later
 * command may overtake it: events would be in the wrong order. Never rejects: a server that does
 * not allow this gets each script with its first use.
 */
export async function loadScripts(redis: RedisClient): Promise<void> {
  const servers = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const loads = servers.flatMap((server) => SCRIPTS.map(({ source }) => server.script('LOAD', source)));
  await Promise.allSettled(loads);
}

/** Runs a script. @throws StoreError */
export function run(redis: RedisClient, script: Script, execution: Execution): Promise<unknown> {
  return answered(evaluate(redis, script, execution));
}

async function evaluate(redis: RedisClient, { source, sha }: Script, execution: Execution): Promise<unknown> {
  const given = operands(execution);
  try {
    return await redis.evalsha(sha, execution.keys.length, ...given);
  } catch (thrown) {
    // A server that restarted has forgotten the script; nothing has run.
    if (!(thrown instanceof Error) || !thrown.message.startsWith('NOSCRIPT')) throw thrown;
    return redis.eval(source, execution.keys.length, ...given);
  }
}

/** The arguments of EVALSHA after the number of keys. */
export function operands({ keys, plan, rest = [] }: Execution): readonly (string | Buffer)[] {
  return [...keys, JSON.stringify(plan), ...rest];
}
