import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { tillOfEachTest } from '../settlement/till.ts';

describe('an answer that went out while somebody else took its record over', () => {
  const till = tillOfEachTest();
  const { pay, desk, facts, later, take, state, receipts } = till;

  it('is delivered all the same once nobody works on it: goods and refund are never both due', async () => {
    const first = await pay({ repeatable: false });
    later(8_000);
    const other = await take({ repeatable: false });
    assert.ok(other.kind === 'spent' && other.state === 'undelivered', 'the other one found a delivery that died');
    await desk().delivered(first.record, facts(first));
    assert.equal(await state(), 'delivered');
    assert.deepEqual(
      (await receipts()).map(({ delivered }) => delivered),
      [true],
    );
  });

  it('is left to an attempt that still works on it', async () => {
    const first = await pay();
    later(8_000);
    const terms = first.record;
    const taken = await till.ledger.reserve({ terms, owner: randomUUID(), leaseMs: 600_000 });
    assert.equal(taken.kind, 'granted');
    await assert.rejects(desk().delivered(first.record, facts(first)), /fenced/, 'and the log is told');
    assert.equal(await state(), 'settled');
  });

  it('makes no new record of one that the store lost', async () => {
    const first = await pay();
    later(26 * 60 * 60 * 1_000);
    await assert.rejects(desk().delivered(first.record, facts(first)), /lost/);
    assert.equal(await state(), undefined);
  });
});
