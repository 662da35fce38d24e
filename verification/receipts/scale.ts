/** A log of receipts of any length over a real store. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { receipt } from '../../spec/payments/ledger/samples.ts';
import { freshKey } from '../../spec/receipts/log/log-bed.ts';
import { startRedis } from '../../spec/support/redis.ts';
import { createSealer } from '../../src/receipts/log/sealer.ts';
import { lineCodes, openSeries } from '../../src/receipts/log/series.ts';
import { verifyReceiptLog } from '../../src/receipts/log/verify.ts';
import { type Receipt, receiptId } from '../../src/receipts/receipt.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';

export type Engine = 'redis' | 'sqlite';

const VERSIONS_EACH = 4;
const BATCH = 100;
const SEAL_EVERY = 5_000;
const MERCHANT = 'shop';

export interface Measured {
  readonly versions: number;
  readonly receipts: number;
  readonly checkpoints: number;
  readonly writeMs: number;
  readonly sealMs: number;
  readonly verifyMs: number;
  readonly residentMb: number;
  /** In the log, a version. */
  readonly bytes: number;
  /** After one receipt was changed. */
  readonly findings: readonly string[];
}

export async function measured(engine: Engine, versions: number): Promise<Measured> {
  const key = freshKey();
  const limits = { eventsMaxLength: 100, receiptsMaxLength: versions };
  const ends = new AsyncDisposableStack();
  try {
    const { store, change } = await opened(engine, ends, { limits, series: openSeries(key) });
    const { receiptLog } = store;
    if (receiptLog === undefined) throw new Error('the store keeps no log');
    const sealer = createSealer(receiptLog, { merchant: MERCHANT, key, maxVersions: 2 * versions });
    let [writeMs, sealMs, written] = [0, 0, 0];
    const timed = async (work: () => Promise<void>): Promise<number> => {
      const began = performance.now();
      await work();
      return performance.now() - began;
    };
    let changed: Receipt | undefined;
    while (written < versions) {
      const batch = Array.from({ length: BATCH }, () => receipt(receiptId(), 'scale'));
      changed ??= batch[0];
      for (let version = 0; version < VERSIONS_EACH; version += 1) {
        const last = version === VERSIONS_EACH - 1;
        const next = batch.map((one) => ({ ...one, durationMs: version, delivered: last }));
        writeMs += await timed(() => store.receipts.write(next));
        written += BATCH;
      }
      if (written % SEAL_EVERY < VERSIONS_EACH * BATCH) sealMs += await timed(() => sealer.seal());
    }
    sealMs += await timed(() => sealer.seal());
    const trust = { merchant: MERCHANT, keys: [key.publicJwk], codes: lineCodes(key) };
    const began = performance.now();
    const report = await verifyReceiptLog(receiptLog, trust);
    const verifyMs = performance.now() - began;
    const residentMb = Math.round(process.memoryUsage.rss() / 1_048_576);
    if (report.findings.length > 0) throw new Error(JSON.stringify(report.findings.slice(0, 5)));
    const [sealed] = await receiptLog.sealed(1, 1);
    const lines = sealed?.versions.split('\n').length ?? 1;
    const bytes = Math.round((sealed?.versions.length ?? 0) / (lines - 1));
    await change(changed?.id ?? '', (text) => text.replace('"delivered":true', '"delivered":false'));
    const { findings } = await verifyReceiptLog(receiptLog, trust);
    const { versions: read, receipts, checkpoints } = report;
    const found = findings.map(({ about, what }) => `${about} ${what}`);
    return { versions: read, receipts, checkpoints, writeMs, sealMs, verifyMs, residentMb, bytes, findings: found };
  } finally {
    await ends.disposeAsync();
  }
}

interface OpenedStore {
  readonly store: Store;
  /** Changes the text of a receipt as no gateway does. */
  change(id: string, to: (text: string) => string): Promise<void>;
}

async function opened(
  engine: Engine,
  ends: AsyncDisposableStack,
  options: Pick<Parameters<typeof openSqliteStore>[0], 'limits'> & { readonly series: ReturnType<typeof openSeries> },
): Promise<OpenedStore> {
  if (engine === 'redis') {
    const server = ends.adopt(await startRedis({ args: ['--appendonly', 'no'] }), ({ stop }) => stop());
    const store = await openRedisStore({ url: server.url, merchantId: MERCHANT, ...options });
    const redis = new Redis({ path: server.socketPath });
    ends.defer(async () => {
      redis.disconnect();
      await store.close();
    });
    const book = `{acg:${MERCHANT}}:rcpt`;
    return {
      store,
      async change(id, to) {
        await redis.hset(book, id, to((await redis.hget(book, id)) ?? ''));
      },
    };
  }
  const directory = mkdtempSync(join(tmpdir(), 'acg-log-'));
  ends.defer(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, 'gateway.db');
  const store = openSqliteStore({ path, ...options });
  ends.defer(() => store.close());
  return {
    store,
    async change(id, to) {
      const { DatabaseSync } = await import('node:sqlite');
      const db = new DatabaseSync(path, { timeout: 5_000 });
      const text = String(db.prepare('SELECT receipt FROM receipts WHERE id = ?').get(id)?.['receipt']);
      db.prepare('UPDATE receipts SET receipt = ? WHERE id = ?').run(to(text), id);
      db.close();
    },
  };
}
