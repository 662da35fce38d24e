import type { StoreLog } from './redis/connection.ts';
import { openRedisStore } from './redis/open.ts';
import type { StorageConfig } from './settings.ts';
import { openSqliteStore } from './sqlite/open.ts';
import type { Store, StoreLimits } from './store.ts';

/** Opens the configured engine. @throws Error when an embedded database cannot be used; a Redis that is down is no reason. */
export async function openStore(
  config: StorageConfig & { readonly merchantId: string },
  log?: StoreLog,
): Promise<Store> {
  const { engine, merchantId, eventsMaxLength, receiptsMaxLength } = config;
  const limits = { eventsMaxLength, receiptsMaxLength };
  if (engine.kind === 'sqlite') return openedFile(engine.path, limits);
  return openRedisStore({ ...engine, merchantId, limits, ...(log === undefined ? {} : { log }) });
}

/** An operator should not have to guess which path it was. */
function openedFile(path: string, limits: StoreLimits): Store {
  try {
    return openSqliteStore({ path, limits });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`storage.sqlite.path: ${path} cannot be used: ${why}`, { cause });
  }
}
