import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { type Receipt, receiptId } from '../../src/receipts/receipt.ts';
import type { Store } from '../../src/store/documents/store.ts';
import type { StoreLimits } from '../../src/store/port/settings.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { PAYMENT, receipt, sha256 } from '../payments/ledger/samples.ts';
import { startRedis } from '../support/redis.ts';
import { insist } from './insist.ts';
import { idsIn } from './opened.ts';

/**
 * The full size, with measured times:
 * `RECEIPTS=1000000 OVER_BOUND=200000 node --test spec/store/receipts-at-scale.spec.ts`
 */
const RECEIPTS = Number(process.env['RECEIPTS'] ?? 4_000);
/** Receipts over the bound of the book. */
const OVER_BOUND = Number(process.env['OVER_BOUND'] ?? 2_000);
const BOUND = 1_000;
/** One in so many is paid and not delivered. */
const OWED_ONE_IN = 200;
const OWED = RECEIPTS / 1_000;
/** Tries of one write: a busy machine may be late for the deadline of a command. */
const ATTEMPTS = 20;
/** As many as the queue of a gateway sends at once. */
const BATCH = 100;
const BEGAN_MS = 1_800_000_000_000;

interface Bed {
  readonly store: Store;
  close(): Promise<void>;
}

const STORES: Readonly<Record<string, (limits: StoreLimits) => Promise<Bed>>> = {
  async Redis(limits) {
    const server = await startRedis({ args: ['--appendonly', 'no'] });
    const store = await openRedisStore({ url: server.url, merchantId: 'shop', limits });
    return {
      store,
      async close() {
        await store.close();
        await server.stop();
      },
    };
  },
  async SQLite(limits) {
    const folder = mkdtempSync(join(tmpdir(), 'acg-books-'));
    const store = openSqliteStore({ path: join(folder, 'books.db'), limits });
    return {
      store,
      async close() {
        await store.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  },
};

function paid(index: number, delivered: boolean): Receipt {
  const id = receiptId(BEGAN_MS + index);
  const payment = { ...PAYMENT, replayKey: sha256(String(index)) };
  return receipt(id, `req_${index}`, { delivered, payment, metadata: { callId: `call_${index}` } });
}

async function fill(
  { receipts }: Store,
  count: number,
  isOwed: (index: number) => boolean,
): Promise<readonly string[]> {
  const owed: string[] = [];
  for (let from = 0; from < count; from += BATCH) {
    const length = Math.min(BATCH, count - from);
    const batch = Array.from({ length }, (_, i) => paid(from + i, !isOwed(from + i)));
    owed.push(...batch.filter(({ delivered }) => !delivered).map(({ id }) => id));
    await insist(() => receipts.write(batch), ATTEMPTS);
  }
  return owed;
}

/** Milliseconds of each of these reads. */
async function timed(t: TestContext, what: string, read: () => Promise<unknown>): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < 200; i += 1) {
    const began = performance.now();
    await insist(read, ATTEMPTS);
    times.push(performance.now() - began);
  }
  times.sort((a, b) => a - b);
  t.diagnostic(`${what}: p50 ${times[100]?.toFixed(2)} ms, p99 ${times[197]?.toFixed(2)} ms`);
}

describe('a book of receipts at scale', () => {
  for (const [name, open] of Object.entries(STORES)) {
    it(`${name}: finds the undelivered among many receipts`, async (t) => {
      const { store, close } = await open({ eventsMaxLength: 100, receiptsMaxLength: 2 * RECEIPTS });
      t.after(close);
      const began = performance.now();
      // The oldest are owed: a search without an index finds them last.
      const owed = await fill(store, RECEIPTS, (index) => index < OWED);
      t.diagnostic(`${RECEIPTS} receipts written in ${Math.round(performance.now() - began)} ms`);
      const first = await store.receipts.page({ limit: 50, delivered: false });
      const expected = owed.toReversed().slice(0, 50);
      assert.deepEqual(idsIn(first), expected);
      const one = await store.receipts.page({ limit: 50, requestId: 'req_0' });
      assert.deepEqual(idsIn(one), owed.slice(0, 1));
      await timed(t, 'first page of delivered=false', () => store.receipts.page({ limit: 50, delivered: false }));
      await timed(t, 'requestId', () => store.receipts.page({ limit: 50, requestId: 'req_0' }));
      await timed(t, 'callId', () => store.receipts.page({ limit: 50, callId: 'call_0' }));
    });

    it(`${name}: lists every refund, however many receipts are over the bound of the book`, async (t) => {
      const { store, close } = await open({ eventsMaxLength: 100, receiptsMaxLength: BOUND });
      t.after(close);
      const owed = await fill(store, BOUND + OVER_BOUND, (index) => index % OWED_ONE_IN === 0);
      while (await insist(() => store.tidy(), ATTEMPTS));
      const found: string[] = [];
      let cursor: string | undefined;
      do {
        const query = { limit: 500, delivered: false, ...(cursor === undefined ? {} : { cursor }) };
        const page = await insist(() => store.receipts.page(query), ATTEMPTS);
        found.push(...page.receipts.map(({ id }) => id));
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      assert.deepEqual(found, owed.toReversed());
      const counts = await store.receipts.counts();
      assert.deepEqual(counts, { done: BOUND, owed: owed.length, uncertain: 0 });
      // A late reply does not count what its write dropped.
      assert.ok(store.receipts.trimmed().length <= OVER_BOUND - owed.length);
      t.diagnostic(
        `${OVER_BOUND} receipts over the bound of ${BOUND}: ${found.length} of ${owed.length} refunds listed`,
      );
    });
  }
});
