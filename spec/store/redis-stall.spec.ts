import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { move } from '../payments/ledger/samples.ts';
import { standStill } from '../support/stand-still.ts';
import { redisBed } from './redis-bed.ts';

/** Longer than a command or a health check may take, milliseconds. */
const STALL_MS = 800;

const bed = redisBed();

describe('a gateway that stood still', () => {
  it('takes replies that arrived meanwhile: none of its commands is called lost', async () => {
    const records = await Promise.all(Array.from({ length: 20 }, () => bed.reserved()));
    const moved = records.map((record) => bed.store.ledger.advance(move(record, 'settling')));
    const page = bed.store.feed.page({ limit: 1 });
    const health = bed.store.check();
    standStill(STALL_MS);
    assert.deepEqual(
      (await Promise.all(moved)).map(({ kind }) => kind),
      records.map(() => 'done'),
    );
    await page;
    assert.notEqual((await health).status, 'unreachable');
  });
});
