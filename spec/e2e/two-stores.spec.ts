import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { LANES, ORDERS, openSurroundings, openTwoStores, PRICE_UNITS, type Surroundings } from './two-stores.ts';

describe('one authorization and two stores with one payee', () => {
  let surroundings: Surroundings;
  before(async () => {
    surroundings = await openSurroundings();
  });
  after(() => surroundings.close());

  for (const lane of LANES)
    for (const settle of ['before', 'after'] as const)
      it(`it buys once: ${lane}, settle: ${settle}`, async () => {
        const stores = await openTwoStores(surroundings, lane, settle);
        try {
          for (const order of ORDERS.slice(0, settle === 'before' ? 2 : 1)) {
            const { delivered, receipts, paidUnits, answers } = await stores.sell(order);
            const seen = `${order}: ${answers.map(({ status }) => status).join(' ')}`;
            assert.equal(delivered.filter(Boolean).length, 1, seen);
            assert.equal(paidUnits, PRICE_UNITS, seen);
            const written = receipts.map((receipt) => [receipt.payment?.status, receipt.delivered]);
            assert.deepEqual(written, [['settled', true]], seen);
          }
        } finally {
          await stores.close();
        }
      });
});
