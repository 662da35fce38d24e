/** Stores that lose their data on demand. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { TestGateway, TestGatewayParts } from '../support/gateway.ts';
import type { TestRedis } from '../support/redis.ts';

/** A store and its loss. `lose` may close the gateway and open another one over the empty store. */
export interface Losable {
  readonly storage: NonNullable<TestGatewayParts['storage']>;
  lose(gateway: TestGateway, reopen: () => Promise<TestGateway>): Promise<TestGateway>;
}

/** Both engines, by the way in which they lose their memory. The SQLite file lies in `folder`. */
export function forgetfulStores(redis: TestRedis, folder: string): Readonly<Record<string, Losable>> {
  return {
    'FLUSHALL on Redis': {
      storage: { redis: { url: redis.url } },
      async lose(gateway) {
        const client = new Redis(redis.socketPath);
        await client.flushall();
        await client.quit();
        return gateway;
      },
    },
    'the SQLite file removed': {
      storage: { sqlite: { path: join(folder, 'gateway.db') } },
      async lose(gateway, reopen) {
        await gateway.close();
        for (const end of ['', '-wal', '-shm']) rmSync(join(folder, `gateway.db${end}`), { force: true });
        return reopen();
      },
    },
  };
}
