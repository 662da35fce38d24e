import { join } from 'node:path';
import { after, before } from 'node:test';
import { sealedStore } from '../../src/store/open.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { storeContract } from './contract.ts';
import { LIMITS, temporaryDirectory } from './opened.ts';

let redis: TestRedis;
const directory = temporaryDirectory();

before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());

storeContract('redis', (merchantId = 'shop') => openRedisStore({ url: redis.url, merchantId, limits: LIMITS }));
storeContract('sqlite file', async (merchantId = 'shop') =>
  openSqliteStore({ path: join(directory, merchantId, 'gateway.db'), limits: LIMITS }),
);
storeContract('sqlite memory', async () => openSqliteStore({ path: ':memory:', limits: LIMITS }));

const KEYS = [{ id: 'k1', key: Buffer.alloc(32, 1) }];
storeContract('redis, sealed', async (merchantId = 'shop') =>
  sealedStore(await openRedisStore({ url: redis.url, merchantId, limits: LIMITS }), KEYS, undefined),
);
storeContract('sqlite, sealed', async () =>
  sealedStore(openSqliteStore({ path: ':memory:', limits: LIMITS }), KEYS, undefined),
);
