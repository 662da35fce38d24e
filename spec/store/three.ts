import { Redis } from 'ioredis';
import type { RegisterEpoch } from '../../src/mandates/register/register.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { FOREVER } from '../mandates/register/register-map.ts';
import { startRedis } from '../support/redis.ts';
import { STEP_MS } from './commands.ts';
import { tableStore } from './table-store.ts';

const LIMITS = { eventsMaxLength: 100_000, receiptsMaxLength: 100_000 };

/** The same question to the table and to both engines. */
export interface Three<T> {
  readonly table: T;
  readonly redis: T;
  readonly sqlite: T;
}

/** The table and both engines, empty, under clocks that agree on what is over. */
export interface ThreeStores {
  /** Asks all three, each with its questions in the same order. */
  onAll<T>(ask: (store: Store) => Promise<T>): Promise<Three<T>>;
  /** A step later: the clock of the table and of SQLite is set on, that of Redis is waited for. */
  step(): Promise<void>;
  /** Milliseconds: where the clocks began. */
  readonly began: number;
  close(): Promise<void>;
}

/** Opens three empty stores, again and again over one Redis. */
export interface ThreeServers {
  /**
   * `epochAt`: since when their registers of mandates remember, given the moment at which the
   * clocks begin; always, unless it is given.
   */
  open(epochAt?: (began: number) => RegisterEpoch): Promise<ThreeStores>;
  stop(): Promise<void>;
}

export async function threeServers(): Promise<ThreeServers> {
  const server = await startRedis({ args: ['--appendonly', 'no'] });
  const redis = new Redis({ path: server.socketPath });
  const engine = await openRedisStore({ url: server.url, merchantId: 'shop', limits: LIMITS });
  const redisClock = async () => {
    const [seconds, micros] = await redis.time();
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  };
  return {
    async open(epochAt = () => FOREVER) {
      await redis.flushall();
      const began = await redisClock();
      const epoch = epochAt(began);
      await redis.hset('{acg:shop}:ap2:epoch', { ...epoch });
      let now = began;
      const table = tableStore(() => now, epoch);
      // In memory: what reaches the disk is not compared here, and other programs that sync would
      // slow every step.
      const sqlite = openSqliteStore({
        path: ':memory:',
        limits: LIMITS,
        now: () => now,
        epoch,
      });
      return {
        began,
        async onAll(ask) {
          const [one, two, three] = await Promise.all([ask(table), ask(engine), ask(sqlite)]);
          return { table: one, redis: two, sqlite: three };
        },
        async step() {
          now += STEP_MS;
          const start = await redisClock();
          while ((await redisClock()) < start + STEP_MS);
        },
        close: () => sqlite.close(),
      };
    },
    async stop() {
      redis.disconnect();
      await engine.close();
      await server.stop();
    },
  };
}
