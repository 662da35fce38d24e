/** Opens the configured store, and seals the secrets in its ledger before the engine sees them. */

import { createKeyRing, type KeyRing, type SealingKey } from '../crypto/seal.ts';
import type { RegisterEpoch } from '../mandates/register.ts';
import { sealedLedger, type Unreadable } from '../payments/ledger/document-ledger.ts';
import type { Store } from './documents/store.ts';
import type { StorageConfig } from './port/settings.ts';
import type { StoreLog } from './redis/client.ts';
import type * as SqliteModule from './sqlite/open.ts';

/** Unreadable secrets that are logged once each: the same record is read again and again. */
const MAX_LOGGED = 1_000;

/** The part of a log that reports what cannot be opened. */
interface SealLog {
  error(fields: object, message: string): void;
}

/**
 * Opens the configured engine. `epoch`: the start of an empty register of mandates, by default now.
 * @throws Error when an embedded database cannot be used; a Redis that is down is no reason
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
  if (engine.kind === 'sqlite') return openFile({ path: engine.path, limits, log, ...begins });
  // Only the engine that is used is loaded: the client of Redis alone takes several megabytes.
  const { openRedisStore } = await import('./redis/open.ts');
  return openRedisStore({ ...engine, merchantId, limits, ...begins, ...(log === undefined ? {} : { log }) });
}

/** @throws Error that names the configuration key and the path */
async function openFile(options: Parameters<typeof SqliteModule.openSqliteStore>[0]): Promise<Store> {
  const { openSqliteStore } = await import('./sqlite/open.ts');
  try {
    return openSqliteStore(options);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`storage.sqlite.path: ${options.path} cannot be used: ${why}`, { cause });
  }
}

/**
 * Seals the secrets of buyers in the ledger, so that the engine sees opaque values. Without keys
 * nothing is sealed, and a value whose key is gone counts as unreadable: its payment is still
 * there.
 */
export function sealedStore(store: Store, keys: readonly SealingKey[], log: SealLog | undefined): Store {
  let ring = ringOf(keys);
  const counts: Record<Unreadable, number> = {
    proof: 0,
    backendRequest: 0,
    rawTransaction: 0,
    answer: 0,
  };
  const logged = new Set<string>();
  const unreadable = (what: Unreadable, payId?: string): void => {
    counts[what] += 1;
    const which = `${what} ${payId ?? ''}`;
    if (logged.has(which)) return;
    if (logged.size < MAX_LOGGED) logged.add(which);
    log?.error(
      { what, ...(payId === undefined ? {} : { payId }) },
      'a stored secret cannot be opened: is its key gone from storage.sealing.keys?',
    );
  };
  return {
    ...store,
    ledger: sealedLedger(store.ledger, () => ring, unreadable),
    unreadable: () => counts,
    renew(config) {
      ring = ringOf(config.sealing ?? []);
      store.renew?.(config);
    },
  };
}

function ringOf([first, ...others]: readonly SealingKey[]): KeyRing | undefined {
  return first && createKeyRing([first, ...others]);
}
