import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { type Store, StoreError } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { until } from '../support/redis-replicas.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { REDIS_LIMITS, type RedisBed } from './redis-bed.ts';

/** Another store of the bed's merchant, over a line that can lose replies. */
export interface LossyStore {
  readonly store: Store;
  /** Sends a command and loses its reply; resolves when the store is connected again. */
  lost(send: () => Promise<unknown>): Promise<void>;
}

/** Open while the tests of the suite run in which it is called. */
export function lossyStore(bed: Pick<RedisBed, 'server'>): LossyStore {
  let opened: { readonly line: TcpProxy; readonly store: Store } | undefined;
  const ready = () => opened ?? assert.fail('not started');
  before(async () => {
    const line = await startTcpProxy({ path: bed.server.socketPath });
    const url = `redis://127.0.0.1:${line.port}`;
    opened = { line, store: await openRedisStore({ url, merchantId: 'shop', limits: REDIS_LIMITS }) };
  });
  after(async () => {
    await opened?.store.close();
    await opened?.line.stop();
  });
  return {
    get store() {
      return ready().store;
    },
    async lost(send) {
      const { line, store } = ready();
      const gone = line.loseReply();
      await assert.rejects(send(), StoreError);
      await gone;
      await until(async () => (await store.check()).status === 'ok', 'the store does not reconnect');
    },
  };
}
