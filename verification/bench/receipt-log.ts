/**
 * What the log of receipts adds to the writes of a paid call: the same payments through two
 * stores, with a log and without, in turns. Prints CPU of this process and of Redis a payment, and
 * its time, microseconds, as medians of the turns. Arguments: turns of each, payments of one.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { holder, move, receipt, terms } from '../../spec/payments/ledger/samples.ts';
import { freshKey } from '../../spec/receipts/log/log-bed.ts';
import { granted, LEASE_MS } from '../../spec/store/opened.ts';
import { startRedis } from '../../spec/support/redis.ts';
import { createSealer } from '../../src/receipts/log/sealer.ts';
import { openSeries } from '../../src/receipts/log/series.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { percentile } from './numbers.ts';

const [turns = 20, payments = 500] = process.argv.slice(2).map(Number);
const AT_ONCE = 16;
const WARM_UP = 4;
const LIMITS = { eventsMaxLength: 10_000, receiptsMaxLength: 50_000 };
const MERCHANT = 'bench';

/** The writes of a paid call: three versions of its receipt. */
async function pay({ ledger }: Store): Promise<void> {
  const record = granted(await ledger.reserve({ terms: terms(), owner: 'buyer', leaseMs: LEASE_MS }));
  const first = receipt(record.receiptId, record.requestId);
  await ledger.advance(move(record, 'settling'));
  await ledger.advance(move(record, 'settled', { receipt: first }));
  const uncertain = { ...first, metadata: { deliveryUncertain: true } } as const;
  await ledger.note({ ...holder(record), leaseMs: LEASE_MS, receipt: uncertain });
  await ledger.advance(move(record, 'delivered', { leaseMs: 0, receipt: { ...first, delivered: true } }));
}

async function turn(store: Store): Promise<void> {
  let left = payments;
  const buyer = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await pay(store);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, buyer));
}

interface Cost {
  readonly cpu: number;
  readonly serverCpu: number;
  readonly time: number;
}

const key = freshKey();
const ends = new AsyncDisposableStack();

/** `serverCpu`: of the server of the store so far, microseconds. */
async function compare(name: string, open: (series: object) => Promise<Store>, serverCpu: () => Promise<number>) {
  const [plain, logged] = [await open({}), await open({ series: openSeries(key) })];
  const { receiptLog } = logged;
  if (receiptLog === undefined) throw new Error('the store keeps no log');
  const sealer = createSealer(receiptLog, { merchant: MERCHANT, key, maxVersions: 200_000 });
  const costs = { plain: [] as Cost[], logged: [] as Cost[] };
  const measure = async (store: Store, into: Cost[] | undefined): Promise<void> => {
    const [cpu, server, began] = [process.cpuUsage(), await serverCpu(), performance.now()];
    await turn(store);
    // What is sealed off the paid path costs CPU as well.
    if (store === logged) await sealer.seal();
    const { user, system } = process.cpuUsage(cpu);
    into?.push({
      cpu: (user + system) / payments,
      serverCpu: ((await serverCpu()) - server) / payments,
      time: ((performance.now() - began) * 1_000) / payments,
    });
  };
  for (let at = -WARM_UP; at < turns; at += 1) {
    const order = at % 2 === 0 ? (['plain', 'logged'] as const) : (['logged', 'plain'] as const);
    for (const which of order) await measure(which === 'plain' ? plain : logged, at < 0 ? undefined : costs[which]);
  }
  for (const figure of ['cpu', 'serverCpu', 'time'] as const) {
    const middle = (all: readonly Cost[]) =>
      percentile(
        all.map((cost) => cost[figure]).toSorted((a, b) => a - b),
        0.5,
      );
    const [without, withLog] = [middle(costs.plain), middle(costs.logged)];
    console.log(
      `${name.padEnd(8)}${figure.padEnd(10)} ${without.toFixed(1)} us without, ${withLog.toFixed(1)} us with the log: +${(withLog - without).toFixed(1)} us`,
    );
  }
  await plain.close();
  await logged.close();
}

try {
  const server = ends.adopt(await startRedis(), ({ stop }) => stop());
  const redis = new Redis({ path: server.socketPath });
  ends.defer(() => redis.disconnect());
  const redisCpu = async (): Promise<number> => {
    const info = await redis.info('cpu');
    const of = (field: string) => Number(new RegExp(`${field}:([0-9.]+)`).exec(info)?.[1] ?? 0);
    return (of('used_cpu_user') + of('used_cpu_sys')) * 1_000_000;
  };
  let opened = 0;
  const merchantId = (): string => {
    opened += 1;
    return `${MERCHANT}-${opened}`;
  };
  await compare(
    'redis',
    (series) => openRedisStore({ url: server.url, merchantId: merchantId(), limits: LIMITS, ...series }),
    redisCpu,
  );
  const directory = mkdtempSync(join(tmpdir(), 'acg-bench-log-'));
  ends.defer(() => rmSync(directory, { recursive: true, force: true }));
  const path = () => join(directory, merchantId(), 'gateway.db');
  await compare(
    'sqlite',
    async (series) => openSqliteStore({ path: path(), limits: LIMITS, ...series }),
    async () => 0,
  );
} finally {
  await ends.disposeAsync();
}
