import schema from '../../schemas/config.schema.json' with { type: 'json' };
import type { ProblemList } from '../problems/problem.ts';
import type { StorageConfig } from '../store/settings.ts';
import type { ConfigDocument } from './document.ts';

const STORAGE = schema.properties.storage.properties;

/** `storage`: an embedded database belongs to one process, so several replicas need Redis in every deployment mode. */
export function deriveStorage(document: ConfigDocument, problems: ProblemList): StorageConfig | undefined {
  const { redis, sqlite, replicas = STORAGE.replicas.default, eventsMaxLength, receiptsMaxLength } = document.storage;
  if (sqlite !== undefined && replicas > 1)
    problems.add('storage.replicas', 'must be 1 with sqlite; several replicas need storage.redis');
  const engine: StorageConfig['engine'] | undefined =
    redis !== undefined ? { kind: 'redis', url: redis.url } : sqlite && { kind: 'sqlite', path: sqlite.path };
  return (
    engine && {
      engine,
      eventsMaxLength: eventsMaxLength ?? STORAGE.eventsMaxLength.default,
      receiptsMaxLength: receiptsMaxLength ?? STORAGE.receiptsMaxLength.default,
      replicas,
    }
  );
}
