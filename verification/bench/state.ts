/**
 * What the payment machine costs a paid call at concurrency 1: the four writes of a purchase
 * (reserve, settling, settled with receipt and event, delivered with the kept answer) against one
 * bare `SET NX PX`, interleaved one by one on one real Redis with its append-only file synced every
 * second. Prints one JSON line: medians in milliseconds and their difference.
 */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { event, holder, move, receipt, terms } from '../../spec/payments/ledger/samples.ts';
import { startRedis } from '../../spec/support/redis.ts';
import type { PaymentLedger } from '../../src/payments/ledger/ledger.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { median } from './numbers.ts';

const ROUNDS = 1_500;
const WARM_UP = 200;
const ANSWER = { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.alloc(1_024, 'x') };

const server = await startRedis();
const limits = { eventsMaxLength: 10_000, receiptsMaxLength: 50_000 };
const store = await openRedisStore({ url: server.url, merchantId: 'bench', limits });
const bare = new Redis({ path: server.socketPath });
try {
  const bareMs: number[] = [];
  const machineMs: number[] = [];
  for (let round = 0; round < ROUNDS + WARM_UP; round += 1) {
    const one = await timed(() => bare.set(`bare:${round}`, randomUUID(), 'PX', 60_000, 'NX'));
    const other = await timed(() => purchase(store.ledger));
    if (round < WARM_UP) continue;
    bareMs.push(one);
    machineMs.push(other);
  }
  const [setNx, machine] = [median(bareMs), median(machineMs)];
  const figures = { setNxMs: rounded(setNx), fourWritesMs: rounded(machine), addedMs: rounded(machine - setNx) };
  process.stdout.write(`${JSON.stringify({ rounds: ROUNDS, ...figures })}\n`);
} finally {
  bare.disconnect();
  await store.close();
  await server.stop();
}

async function purchase(ledger: PaymentLedger): Promise<void> {
  const offered = terms();
  const reserved = await ledger.reserve({ terms: offered, owner: randomUUID(), leaseMs: 7_000 });
  if (reserved.kind !== 'granted') throw new Error(`reserved: ${reserved.kind}`);
  let { record } = reserved;
  const issued = receipt(offered.receiptId, offered.requestId);
  for (const to of ['settling', 'settled', 'delivered'] as const) {
    const written = await ledger.advance({
      ...move(record, to),
      ...holder(record),
      events: [event('payment.settled', offered.requestId)],
      ...(to === 'settling' ? {} : { receipt: issued }),
      ...(to === 'delivered' ? { keeping: { answer: ANSWER, forMs: 10_000 } } : {}),
    });
    if (written.kind !== 'done') throw new Error(`${to}: ${written.kind}`);
    record = written.record;
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
