import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import type { ProblemList } from '../../problems/problem.ts';
import type { StorageConfig } from '../../store/port/settings.ts';
import type { ConfigDocument, RedisDocument } from '../document/document.ts';
import { deriveRedis } from './redis.ts';
import { SEALING_KEYS, sealingKeys } from './sealing.ts';

const STORAGE = schema.properties.storage.properties;

const DAY_MS = 24 * 60 * 60 * 1_000;

/** `storage`: an embedded database belongs to one process, so several replicas need Redis in every deployment mode. */
export function deriveStorage(document: ConfigDocument, problems: ProblemList): StorageConfig | undefined {
  const { redis, sqlite, replicas = STORAGE.replicas.default, eventsMaxLength, ...rest } = document.storage;
  const { receiptsMaxLength, receiptsMaxAgeDays, sealing } = rest;
  const [first, ...others] = sealingKeys(sealing?.keys ?? [], SEALING_KEYS, problems);
  if (sqlite !== undefined && replicas > 1)
    problems.add('storage.replicas', 'must be 1 with sqlite; several replicas need storage.redis');
  const engine = redis === undefined ? sqlite && embedded(sqlite.path) : server(redis, problems);
  return (
    engine && {
      engine,
      eventsMaxLength: eventsMaxLength ?? STORAGE.eventsMaxLength.default,
      receiptsMaxLength: receiptsMaxLength ?? STORAGE.receiptsMaxLength.default,
      ...(receiptsMaxAgeDays === undefined ? {} : { receiptsMaxAgeMs: receiptsMaxAgeDays * DAY_MS }),
      ...(first === undefined ? {} : { sealing: [first, ...others] as const }),
      replicas,
    }
  );
}

function embedded(path: string): StorageConfig['engine'] {
  return { kind: 'sqlite', path };
}

function server(redis: RedisDocument, problems: ProblemList): StorageConfig['engine'] | undefined {
  const settings = deriveRedis(redis, problems);
  return settings && { kind: 'redis', ...settings };
}
