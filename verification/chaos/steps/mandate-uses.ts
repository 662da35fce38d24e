/** Reads the uses of mandates from the store of a site. */

import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import type { OpenMandateState } from '../../../src/mandates/register/register-table.ts';
import type { PaymentState } from '../../../src/payments/ledger/ledger.ts';
import { VERSION_LENGTH } from '../../../src/store/port/commit.ts';
import { keyPrefix } from '../../../src/store/redis/open.ts';
import type { Ground } from './ground.ts';
import { databasePath, type Site, type SiteParts } from './site.ts';

/** The uses of mandates in the register of a site, as stored. */
export interface Uses {
  /** Closed mandates and checkouts that count as used. */
  readonly once: number;
  /** Of each open mandate, numbers as text. */
  readonly open: readonly Share[];
}

type Share = Readonly<Record<'spent' | 'pending' | 'uses' | 'puses', string>>;

/** A closed mandate for the checkout, one for the payment, and the checkout itself. */
const ONCE = 3;
/** Where their documents are. */
const ONCE_KEY = 'ap2:once:';
const OPEN_KEY = 'ap2:open:';
const NOTHING: Uses = { once: 0, open: [] };

/**
 * What one purchase under a pair of open mandates must have used up when its payment is in this
 * state: spent once it is settled, released once it can never be, and held while that is unknown.
 * `units`: its price, minor units.
 */
export function usesOf(state: PaymentState | undefined, units: bigint): Uses {
  if (state === undefined || state === 'refused') return NOTHING;
  const isHeld = state === 'reserved' || state === 'settling';
  const share = isHeld
    ? { spent: '0', pending: String(units), uses: '0', puses: '1' }
    : { spent: String(units), pending: '0', uses: '1', puses: '0' };
  return { once: ONCE, open: [share, share] };
}

/** Reads the register from the store directly, without the gateway's code. */
export async function readUses(ground: Ground, site: Site, store: SiteParts['store']): Promise<Uses> {
  return store === 'sqlite' ? inDatabase(databasePath(ground, site)) : inRedis(ground, site);
}

function inDatabase(path: string): Uses {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const valuesOf = (prefix: string) =>
      db
        .prepare('SELECT value FROM documents WHERE key GLOB ?')
        .all(`${prefix}*`)
        .map(({ value }) => String(value));
    return { once: valuesOf(ONCE_KEY).length, open: valuesOf(OPEN_KEY).map(shareIn) };
  } finally {
    db.close();
  }
}

async function inRedis({ redis }: Ground, { merchantId }: Site): Promise<Uses> {
  const client = new Redis(redis.socketPath);
  try {
    const keysOf = (prefix: string) => client.keys(`${keyPrefix(merchantId)}${prefix}*`);
    const open = await keysOf(OPEN_KEY);
    const states = open.length === 0 ? [] : await client.mget(...open);
    return {
      once: (await keysOf(ONCE_KEY)).length,
      open: states.map((text) => shareIn((text ?? '').slice(VERSION_LENGTH))),
    };
  } finally {
    client.disconnect();
  }
}

function shareIn(json: string): Share {
  const { spent, pending, uses, puses } = JSON.parse(json) as OpenMandateState;
  return { spent, pending, uses: String(uses), puses: String(puses) };
}
