import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { Store } from '../../src/store/documents/store.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { until } from '../support/redis-replicas.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { REDIS_LIMITS, type RedisBed } from './redis-bed.ts';

/** How a commit that was made is answered. */
const DONE = '\r\ndone\r\n';

/** Another store of the bed's merchant, over a line that can lose replies. */
export interface LossyStore {
  readonly store: Store;
  /** Sends a command, loses the reply to its commit, and waits until the store is connected. */
  lost(send: () => Promise<unknown>): Promise<void>;
}

/** Open while the tests of the suite run in which it is called. */
export function lossyStore(bed: Pick<RedisBed, 'server'>): LossyStore {
  let opened: { readonly line: TcpProxy; readonly store: Store } | undefined;
  let lose: (() => void) | undefined;
  const ready = () => opened ?? assert.fail('not started');
  before(async () => {
    const line = await startTcpProxy({ path: bed.server.socketPath }, ({ bytes, direction, client, pass }) => {
      if (lose === undefined || direction === 'request' || !bytes.includes(DONE)) return pass();
      client.destroy();
      lose();
      lose = undefined;
    });
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
      const { store } = ready();
      // The check that a new connection begins with is over before this one is.
      await store.check();
      const gone = new Promise<void>((resolve) => {
        lose = resolve;
      });
      await assert.rejects(send(), StoreError);
      await gone;
      await until(async () => (await store.check()).status === 'ok', 'the store does not reconnect');
    },
  };
}
