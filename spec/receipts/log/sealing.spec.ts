import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startSealing } from '../../../src/receipts/log/sealer.ts';
import { receiptId } from '../../../src/receipts/receipt.ts';
import { StoreError } from '../../../src/store/port/store.ts';
import { receipt } from '../../payments/ledger/samples.ts';
import { temporaryDirectory } from '../../store/temporary.ts';
import { KEY, logOf, MERCHANT, sqliteBed, verified } from './log-bed.ts';

const OPTIONS = { merchant: MERCHANT, key: KEY, maxVersions: 10_000 };
const NEVER_MS = 2 ** 30;
const fails = (cause: unknown): never => {
  throw cause;
};
const directory = temporaryDirectory();

async function until(found: () => Promise<boolean>): Promise<void> {
  while (!(await found())) await delay(5);
}

describe('sealing in the background', () => {
  it('comes by time, and seals what is left at the end', async () => {
    const bed = sqliteBed(directory);
    const store = await bed.open();
    const sealing = startSealing(logOf(store), OPTIONS, fails, 5);
    await store.receipts.write([receipt(receiptId(), 'first')]);
    await until(async () => (await verified(store)).checkpoints === 1);
    await store.receipts.write([receipt(receiptId(), 'second')]);
    await sealing.stop();
    const { waiting, versions, findings } = await verified(store);
    assert.deepEqual({ waiting, versions, findings }, { waiting: 0, versions: 2, findings: [] });
    await bed.close();
  });

  it('comes after 1,000 versions, and not before', async () => {
    const bed = sqliteBed(directory);
    const store = await bed.open();
    const sealing = startSealing(logOf(store), OPTIONS, fails, NEVER_MS);
    const many = (count: number) => Array.from({ length: count }, () => receipt(receiptId(), 'many'));
    await store.receipts.write(many(999));
    await delay(1_100);
    assert.equal((await verified(store)).checkpoints, 0);
    await store.receipts.write(many(2));
    await until(async () => (await verified(store)).checkpoints > 0);
    await sealing.stop();
    const { checkpoints, waiting } = await verified(store);
    assert.deepEqual({ checkpoints, waiting }, { checkpoints: 2, waiting: 0 });
    await bed.close();
  });

  it('goes on when the store comes back, and says once that it waits', async () => {
    const bed = sqliteBed(directory);
    const store = await bed.open();
    await store.receipts.write([receipt(receiptId(), 'first')]);
    const log = logOf(store);
    let isAway = true;
    let asked = 0;
    const told: unknown[] = [];
    const flaky = {
      ...log,
      async bounds() {
        asked += 1;
        if (isAway) throw new StoreError(new Error('away'));
        return log.bounds();
      },
    };
    const sealing = startSealing(flaky, OPTIONS, (cause) => told.push(cause), 5);
    await until(async () => asked > 2);
    assert.equal(told.length, 1);
    isAway = false;
    await until(async () => (await verified(store)).checkpoints === 1);
    await sealing.stop();
    assert.equal(told.length, 1);
    await bed.close();
  });
});
