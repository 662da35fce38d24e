/** Looks at the server's settings for what may lose payments, and warns of it. */

import { answered, type RedisClient, type StoreLog } from './client.ts';

/** Share of `maxmemory` above which a warning is due. */
const MEMORY_WARN_SHARE = 0.85;
const SECTIONS = ['memory', 'persistence', 'replication'] as const;
/** A replica that is connected and caught up, as INFO shows it. */
const ONLINE_REPLICA = /^slave\d+:.*\bstate=online\b/;
/** Writes that may not be on disk yet with each `appendfsync`. */
const UNSYNCED: Readonly<Record<string, string>> = {
  everysec: 'the last second or two',
  no: 'up to half a minute',
};
const PAYMENTS = 'payments, deliveries and receipts';

/** The aspects of a server that INFO shows. */
type Aspect = 'eviction' | 'memory' | 'appendOnly' | 'replicas';
/** Null: in order; absent: the server does not show it. */
type Setup = Readonly<Partial<Record<Aspect, string | null>>>;

/**
 * Reads from the server of our keys the settings that may lose payments. A managed server may
 * refuse INFO. Never rejects.
 */
export async function readSetup(redis: RedisClient, prefix: string, replicas: number): Promise<Setup> {
  // In a cluster the key sends all four to the node that has our slot.
  const [memory, persistence, replication] = SECTIONS;
  const pipeline = redis.pipeline().get(`${prefix}ready`).info(memory).info(persistence).info(replication);
  const results = await answered(pipeline.exec()).catch(() => undefined);
  // After an error for the key (refused, or moved) the rest may describe another node.
  if (results === null || results === undefined || results[0]?.[0]) return {};
  const lines = results.slice(1).flatMap(([error, text]) => (error ? [] : String(text).split('\r\n')));
  const info = fieldsOf(lines);
  return { ...ofMemory(info), ...ofPersistence(info), ...ofReplicas(lines, replicas) };
}

/** The weaknesses that `readSetup` finds; an unknown setting counts as none. */
export async function weaknesses(redis: RedisClient, prefix: string, replicas: number): Promise<readonly string[]> {
  return Object.values(await readSetup(redis, prefix, replicas)).filter((weak) => weak !== null);
}

/**
 * How often the append-only file reaches the disk, which INFO does not show. `off` without such a
 * file, `secret` where CONFIG GET is not allowed; undefined when the server shows nothing.
 */
export async function readFsync(redis: RedisClient, prefix: string): Promise<string | undefined> {
  // In a cluster the key sends the others to the node that has our slot.
  const pipeline = redis.pipeline().get(`${prefix}ready`).info('persistence').config('GET', 'appendfsync');
  const [key, info, config] = (await answered(pipeline.exec()).catch(() => undefined)) ?? [];
  if (key === undefined || key[0] || info === undefined || info[0]) return undefined;
  if (fieldsOf(String(info[1]).split('\r\n')).get('aof_enabled') !== '1') return 'off';
  const [, fsync] = config !== undefined && !config[0] && Array.isArray(config[1]) ? config[1].map(String) : [];
  return fsync ?? 'secret';
}

/**
 * Names the loss by a crash of the server's machine under its `appendfsync`, which is a choice and
 * no mistake. Never rejects.
 */
export async function costs(redis: RedisClient, prefix: string): Promise<readonly string[]> {
  const cost = costOf((await readFsync(redis, prefix)) ?? 'off');
  return cost === undefined ? [] : [cost];
}

/** Names the loss by a power cut; undefined where `appendfsync` adds none. */
export function costOf(fsync: string): string | undefined {
  if (fsync === 'secret')
    return `appendfsync cannot be read (CONFIG GET is not allowed): unless it is always, a power cut forgets ${PAYMENTS}`;
  const seconds = UNSYNCED[fsync];
  return seconds && `appendfsync ${fsync}: a power cut forgets ${PAYMENTS} of ${seconds}; always forgets none`;
}

/** Logs weaknesses and costs once, and again when a reconnect (after a failover) finds others. */
export function reportWeaknesses(redis: RedisClient, prefix: string, replicas: number, log: StoreLog): void {
  const logged = { weak: '', costs: '' };
  const look = async (): Promise<void> => {
    const weak = await weaknesses(redis, prefix, replicas);
    const weakText = weak.join('; ');
    if (weakText !== '' && weakText !== logged.weak) log.warn({ weak }, 'redis may lose payments as it is set up');
    logged.weak = weakText;
    const forgets = await costs(redis, prefix);
    const costsText = forgets.join('; ');
    if (costsText !== '' && costsText !== logged.costs)
      log.warn({ forgets }, 'redis answers before it has written to disk');
    logged.costs = costsText;
  };
  redis.on('ready', () => void look());
  if (redis.status === 'ready') void look();
}

function fieldsOf(lines: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    lines.map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}

function ofMemory(info: ReadonlyMap<string, string>): Setup {
  const policy = info.get('maxmemory_policy');
  if (policy === undefined) return {};
  const limit = Number(info.get('maxmemory') ?? 0);
  const full = limit > 0 && Number(info.get('used_memory') ?? 0) > limit * MEMORY_WARN_SHARE;
  return {
    eviction: policy === 'noeviction' ? null : `maxmemory-policy ${policy} may evict the replay guard; set noeviction`,
    memory: full ? 'memory is nearly full' : null,
  };
}

function ofPersistence(info: ReadonlyMap<string, string>): Setup {
  const enabled = info.get('aof_enabled');
  if (enabled === undefined) return {};
  if (enabled === '0')
    return { appendOnly: 'appendonly is off: a restart forgets every payment, receipt and refund that is due' };
  return { appendOnly: info.get('aof_last_write_status') === 'err' ? 'the append-only file cannot be written' : null };
}

function ofReplicas(lines: readonly string[], wanted: number): Setup {
  if (!lines.some((line) => line.startsWith('connected_slaves:'))) return {};
  const online = lines.filter((line) => ONLINE_REPLICA.test(line)).length;
  return { replicas: online < wanted ? `${online} of ${wanted} replicas are online` : null };
}
