import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { StoreError, type StoreHealth } from '../store.ts';
import { answered } from './failure.ts';
import type { RedisKeys } from './keys.ts';
import { CHECK } from './script.ts';

/** Deadline of one write and read back, milliseconds. */
const CHECK_TIMEOUT_MS = 300;
/** The probe key may go this long after the last check, milliseconds. */
const PROBE_KEEP_MS = 60_000;
/** Between two looks at how the server is set up, milliseconds. */
const SETUP_EVERY_MS = 60_000;
/** Share of `maxmemory` above which an operator should know. */
const MEMORY_WARN_SHARE = 0.85;
/** Refusals of a server that answers but takes no writes. */
const UNWRITABLE = /\b(READONLY|OOM|MISCONF|NOREPLICAS|NOPERM)\b/;

/** Whether Redis takes writes, and once a minute whether it is set up so that they last. */
export function redisHealth(redis: Redis, keys: RedisKeys): () => Promise<StoreHealth> {
  let setup: StoreHealth = { status: 'ok' };
  let lookedAt = Number.NEGATIVE_INFINITY;
  return async function check() {
    const written = await writable(redis, keys);
    if (written.status !== 'ok') return written;
    if (performance.now() - lookedAt >= SETUP_EVERY_MS) {
      setup = await lastingSetup(redis);
      lookedAt = performance.now();
    }
    return setup;
  };
}

async function writable(redis: Redis, keys: RedisKeys): Promise<StoreHealth> {
  const token = randomUUID();
  try {
    const read = await withDeadline(CHECK(redis, [keys.ready], { token, keepMs: PROBE_KEEP_MS }));
    return read === token ? { status: 'ok' } : { status: 'unwritable', cause: 'a written value was not read back' };
  } catch (thrown) {
    const cause = causeOf(thrown);
    return { status: UNWRITABLE.test(cause) ? 'unwritable' : 'unreachable', cause };
  }
}

/** Managed servers may refuse INFO: what cannot be known is no failure. */
async function lastingSetup(redis: Redis): Promise<StoreHealth> {
  const sections = ['memory', 'persistence'];
  const texts = await Promise.all(sections.map((section) => answered(redis.info(section)).catch(() => '')));
  const cause = weakness(new Map(texts.join('\r\n').split('\r\n').map(fieldOf)));
  return cause === undefined ? { status: 'ok' } : { status: 'degraded', cause };
}

function fieldOf(line: string): [string, string] {
  const at = line.indexOf(':');
  return [line.slice(0, at), line.slice(at + 1)];
}

function weakness(info: ReadonlyMap<string, string>): string | undefined {
  const policy = info.get('maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction')
    return `maxmemory-policy ${policy} may evict the replay guard; set noeviction`;
  if (info.get('aof_enabled') === '0') return 'appendonly is off: a restart forgets payments';
  if (info.get('aof_last_write_status') === 'err') return 'the append-only file cannot be written';
  const limit = Number(info.get('maxmemory') ?? 0);
  const used = Number(info.get('used_memory') ?? 0);
  return limit > 0 && used > limit * MEMORY_WARN_SHARE ? 'memory is nearly full' : undefined;
}

function withDeadline<T>(reply: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StoreError(new Error('no answer in time'))), CHECK_TIMEOUT_MS);
  });
  return Promise.race([reply, late]).finally(() => clearTimeout(timer));
}

function causeOf(thrown: unknown): string {
  const cause = thrown instanceof StoreError ? thrown.cause : thrown;
  return cause instanceof Error ? cause.message : String(cause);
}
