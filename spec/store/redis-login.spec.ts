import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import type { Store } from '../../src/store/documents/store.ts';
import { openStore } from '../../src/store/open.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const LIMITS = { eventsMaxLength: 100, receiptsMaxLength: 100, replicas: 1 } as const;
const [OLD, NEW] = ['the-old-password', 'the-new-password'];

describe('a changed password of Redis', { timeout: 60_000 }, () => {
  let redis: TestRedis;
  let admin: Redis;
  let store: Store;
  const configOf = (password: string) => ({
    ...LIMITS,
    merchantId: 'shop',
    engine: { kind: 'redis', url: redis.url, password } as const,
  });
  before(async () => {
    redis = await startRedis();
    admin = new Redis(redis.socketPath);
    await admin.acl('SETUSER', 'default', 'resetpass', `>${OLD}`, `>${NEW}`);
    store = await openStore(configOf(OLD));
  });
  after(async () => {
    await store?.close();
    admin?.disconnect();
    await redis?.stop();
  });

  it('is used for the next connection, and no command of the open one is lost', async () => {
    assert.equal(await store.secrets.agree('name', 'first'), 'first');
    store.renew?.(configOf(NEW));
    await admin.acl('SETUSER', 'default', `<${OLD}`);
    assert.equal(await store.secrets.agree('name', 'second'), 'first', 'the open connection stays');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    for (;;)
      if ((await store.check()).status === 'ok') break;
      else await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(await store.secrets.agree('name', 'third'), 'first');
  });
});
