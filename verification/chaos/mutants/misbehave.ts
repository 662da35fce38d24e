/** Runs a gateway with one part replaced by a wrong one. */

import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { serve } from '../../../src/cli/serve.ts';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { createRail, type X402Rail } from '../../../src/payments/x402/create-rail.ts';
import { openStore } from '../../../src/store/open.ts';
import type { Store } from '../../../src/store/port/store.ts';
import { type RedisKeys, redisKeys } from '../../../src/store/redis/keys.ts';

/** The engine behind a store, for mistakes that its ports do not allow. */
export interface Engine {
  readonly redis: Redis;
  readonly keys: RedisKeys;
}

/** The wrong parts of a gateway; the rest is the real one. */
export interface Mistake {
  readonly rail?: (rail: X402Rail) => X402Rail;
  readonly ledger?: (ledger: PaymentLedger, engine: Engine) => PaymentLedger;
  readonly store?: (store: Store) => Store;
  /** Instead of opening the real one. */
  readonly openStore?: typeof openStore;
}

/** Runs `serve` with a mistake, as the entry of a process: `<entry> serve --config FILE`. */
export async function misbehave(mistake: Mistake): Promise<void> {
  const { rail = same, ledger, store = same, openStore: open = openStore } = mistake;
  const { values } = parseArgs({ allowPositionals: true, options: { config: { type: 'string' } } });
  await serve(values.config === undefined ? {} : { config: values.config }, {
    openStore: async (config, log) => {
      const opened = store(await open(config, log));
      return ledger === undefined ? opened : { ...opened, ledger: ledger(opened.ledger, engineOf(config)) };
    },
    createRail: async (config, log) => rail(await createRail(config, log)),
  });
}

function same<T>(part: T): T {
  return part;
}

function engineOf({ engine, merchantId }: Parameters<typeof openStore>[0]): Engine {
  if (engine.kind !== 'redis' || !('url' in engine)) throw new Error('this mistake is made with one Redis');
  return { redis: new Redis(engine.url.replace(/^unix:\/\//, '')), keys: redisKeys(merchantId) };
}
