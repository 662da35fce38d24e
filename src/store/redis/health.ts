/** Readiness checks of Redis, which also look after the epoch of the register of mandates. */

import { randomUUID } from 'node:crypto';
import type { RegisterEpoch } from '../../mandates/register/register.ts';
import { inTime } from '../../time/time.ts';
import { StoreError, type StoreHealth } from '../port/store.ts';
import type { RedisClient } from './client.ts';
import type { StoreLog } from './connection.ts';
import { type RedisKeys, registerKeys } from './keys.ts';
import { parts } from './reply.ts';
import { CHECK, run } from './script.ts';
import { weaknesses } from './setup.ts';

/** Deadline of one write and read back, milliseconds. */
const CHECK_TIMEOUT_MS = 300;
/** Lifetime of the probe key after the last check, milliseconds. */
const PROBE_KEEP_MS = 60_000;
/** Between two looks at how the server is set up, milliseconds. */
const SETUP_EVERY_MS = 60_000;
/** Errors of a server that answers but takes no writes. */
const UNWRITABLE = /\b(READONLY|OOM|MISCONF|NOREPLICAS|NOPERM)\b/;

const LOST =
  'redis lost its data: checkouts and open mandates from before are refused, they may have been used; ' +
  'openFrom 0 in the hash ap2:epoch accepts the open mandates again';

/** Whether Redis takes writes, and once a minute whether it is set up so that they last. */
export function redisHealth(
  redis: RedisClient,
  keys: RedisKeys,
  replicas: number,
  epoch: EpochWatch,
): () => Promise<StoreHealth> {
  let setup: StoreHealth = { status: 'ok' };
  let lookedAt = Number.NEGATIVE_INFINITY;
  return async function check() {
    const written = await writable(redis, keys, epoch);
    if (written.status !== 'ok') return written;
    if (performance.now() - lookedAt >= SETUP_EVERY_MS) {
      const weak = await weaknesses(redis, keys, replicas);
      setup = weak.length === 0 ? { status: 'ok' } : { status: 'degraded', cause: weak.join('; ') };
      lookedAt = performance.now();
    }
    return setup;
  };
}

/** Writes and reads back, and begins the epoch of an empty register. Never rejects. */
export async function writable(redis: RedisClient, keys: RedisKeys, epoch: EpochWatch): Promise<StoreHealth> {
  const token = randomUUID();
  const plan = { token, keepMs: PROBE_KEEP_MS, ...epoch.plan() };
  try {
    const check = run(redis, CHECK, { keys: [keys.ready, ...registerKeys(keys)], plan });
    const [read, born] = parts(await inTime(check, CHECK_TIMEOUT_MS, late));
    epoch.saw(String(born));
    return read === token ? { status: 'ok' } : { status: 'unwritable', cause: 'a written value was not read back' };
  } catch (thrown) {
    const cause = causeOf(thrown);
    return { status: UNWRITABLE.test(cause) ? 'unwritable' : 'unreachable', cause };
  }
}

function late(): never {
  throw new StoreError(new Error('no answer in time'));
}

function causeOf(thrown: unknown): string {
  const cause = thrown instanceof StoreError ? thrown.cause : thrown;
  return cause instanceof Error ? cause.message : String(cause);
}

/**
 * What this process knows of the epoch of the register. Only a process that has seen an epoch can
 * tell a store that lost its data from a new one.
 */
export interface EpochWatch {
  /** For check.lua: the birth that was seen before, and what an empty register begins with. */
  readonly plan: () => { readonly known?: string; readonly first?: RegisterEpoch };
  /** Notes the birth that the register has now, milliseconds as text, and logs a loss. */
  readonly saw: (born: string) => void;
}

/** `first`: undefined for a register that begins now. */
export function watchEpoch(first: RegisterEpoch | undefined, log: StoreLog | undefined): EpochWatch {
  let known: string | undefined;
  return {
    plan: () => ({ ...(known === undefined ? {} : { known }), ...(first === undefined ? {} : { first }) }),
    saw(born) {
      // A birth that an operator has set back is no loss.
      if (known !== undefined && Number(born) > Number(known)) log?.warn({ since: iso(born) }, LOST);
      known = born;
    },
  };
}

function iso(milliseconds: string): string {
  return new Date(Number(milliseconds)).toISOString();
}
