import type { RegisterEpoch } from '../mandates/register/register.ts';
import type { StorageConfig } from './port/settings.ts';
import type { Store } from './port/store.ts';
import type { StoreLog } from './redis/connection.ts';
import { openRedisStore } from './redis/open.ts';
import { type SealLog, sealedStore } from './sealed.ts';
import { openSqliteStore } from './sqlite/open.ts';

/**
 * Opens the configured engine. `epoch`: what an empty register of mandates begins with, now unless it is given. @throws Error when an embedded database cannot be used; a Redis that is down is no
 * reason.
 */
export async function openStore(
  config: StorageConfig & { readonly merchantId: string; readonly epoch?: RegisterEpoch },
  log?: StoreLog & SealLog,
): Promise<Store> {
  return sealedStore(await openEngine(config, log), config.sealing ?? [], log);
}

async function openEngine(config: Parameters<typeof openStore>[0], log: StoreLog | undefined): Promise<Store> {
  const { engine, merchantId, eventsMaxLength, receiptsMaxLength, receiptsMaxAgeMs, epoch } = config;
  const age = receiptsMaxAgeMs === undefined ? {} : { receiptsMaxAgeMs };
  const limits = { eventsMaxLength, receiptsMaxLength, ...age };
  const begins = epoch === undefined ? {} : { epoch };
  if (engine.kind === 'sqlite') return openedFile({ path: engine.path, limits, ...begins });
  return openRedisStore({ ...engine, merchantId, limits, ...begins, ...(log === undefined ? {} : { log }) });
}

/** An operator should not have to guess which path it was. */
function openedFile(options: Parameters<typeof openSqliteStore>[0]): Store {
  try {
    return openSqliteStore(options);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`storage.sqlite.path: ${options.path} cannot be used: ${why}`, { cause });
  }
}
