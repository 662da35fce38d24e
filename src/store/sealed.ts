import { createKeyRing } from '../crypto/key-ring.ts';
import type { SealingKey } from '../crypto/seal.ts';
import { sealedLedger, type Unreadable } from '../payments/ledger/sealed-ledger.ts';
import type { Store } from './port/store.ts';

/** Where it is told that something could not be opened. */
export interface SealLog {
  error(fields: object, message: string): void;
}

/** Records of which it was said already; the same one is read again and again. */
const MAX_TOLD = 1_000;

/**
 * The store with everything sealed that a buyer sends, signs or is given: the engine behind it sees opaque text. With no keys nothing is
 * sealed, and what was sealed with keys that are gone is treated as not readable, never as absent money.
 */
export function sealedStore(store: Store, keys: readonly SealingKey[], log: SealLog | undefined): Store {
  const [first, ...others] = keys;
  const ring = first && createKeyRing([first, ...others]);
  const counts: Record<Unreadable, number> = {
    proof: 0,
    backendRequest: 0,
    rawTransaction: 0,
    answer: 0,
  };
  const told = new Set<string>();
  const unreadable = (what: Unreadable, payId?: string): void => {
    counts[what] += 1;
    const which = `${what} ${payId ?? ''}`;
    if (told.has(which)) return;
    if (told.size < MAX_TOLD) told.add(which);
    log?.error(
      { what, ...(payId === undefined ? {} : { payId }) },
      'a stored secret cannot be opened: is its key gone from storage.sealing.keys?',
    );
  };
  return {
    ...store,
    ledger: sealedLedger(store.ledger, ring, unreadable),
    unreadable: () => counts,
  };
}
