import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import type { PaymentTerms } from '../../../src/payments/ledger/ledger.ts';
import { paymentReceiptId } from '../../../src/payments/ledger/payment-receipt.ts';
import type { Paid } from '../../../src/payments/settlement/settlement-request.ts';
import { receiptFromChain } from '../../../src/payments/x402/chain/chain-receipt.ts';
import type { ChainPayment } from '../../../src/payments/x402/chain/payment-logs.ts';
import { replayKey } from '../../../src/payments/x402/wire/payload-schema.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import type { Store } from '../../../src/store/documents/store.ts';
import { openRedisStore } from '../../../src/store/redis/open.ts';
import { openSqliteStore } from '../../../src/store/sqlite/open.ts';
import { type Chance, chanceOf } from '../../../verification/chaos/sim/chance.ts';
import { startRedis } from '../../support/redis.ts';
import { HASH, PAID, SPENT } from './scripted-rail.ts';
import { freshTerms, NOON_MS, worldOfEachTest } from './world.ts';

/**
 * Orders that are tried on each store; more with `ORDERS=1000 node --test
 * spec/payments/settlement/receipts-after-store-loss.spec.ts`.
 */
const ORDERS = Number(process.env['ORDERS'] ?? 25);
/** Payments that the store forgot. */
const PAYMENTS = 10;

const CHAIN = {
  network: 'eip155:1',
  chainId: 1,
  asset: '0x3333333333333333333333333333333333333333',
  assetName: 'TUSD',
  assetDecimals: 6,
  maxTimeoutSeconds: 120,
  payTo: '0x2222222222222222222222222222222222222222',
} as const;

/**
 * A payment of seven units that the chain shows. Its transaction spells the authorization as the
 * buyer signed it, or hides it in a contract, or spells another one that the payer signed for the
 * same nonce, with an end soon after or in the far future.
 */
interface Payment {
  readonly terms: PaymentTerms;
  readonly shown: ChainPayment;
  /** Whether its buyer collects it, and how that delivery ends. */
  readonly collection: 'delivered' | 'undelivered' | 'never';
}

function paymentOf(index: number): Payment {
  const [from, nonce] = [`0x${randomBytes(20).toString('hex')}`, `0x${randomBytes(32).toString('hex')}`];
  const payId = replayKey({ chainId: CHAIN.chainId, asset: CHAIN.asset, from, nonce });
  const { validBefore, ...terms } = freshTerms();
  const spelled = [BigInt(validBefore), undefined, BigInt(validBefore + 77), 10n ** 20n][index % 4];
  return {
    terms: {
      ...terms,
      payId,
      validBefore,
      payer: from,
      nonce,
      receiptId: paymentReceiptId(payId, validBefore, CHAIN.maxTimeoutSeconds),
    },
    shown: {
      ...{ from, nonce, units: 7n, transaction: HASH, time: NOON_MS / 1_000 - 5, validBefore: spelled },
      ...{ sender: undefined, marked: false },
    },
    collection: (['delivered', 'undelivered', 'never'] as const)[index % 3] ?? 'never',
  };
}

function shuffled<T>(items: readonly T[], draw: Chance): readonly T[] {
  return items
    .map((item) => ({ item, at: draw.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

describe('after a loss of the store, in any order of calls', () => {
  const world = worldOfEachTest();

  /**
   * Searches the chain more than once while buyers collect, in a random order; resolves to the
   * receipts.
   */
  async function receiptsAfter(seed: number, store: Store, payments: readonly Payment[]): Promise<readonly Receipt[]> {
    const draw = chanceOf(seed);
    const rebuild = async ({ shown }: Payment): Promise<void> => {
      await store.receipts.add([receiptFromChain(shown, CHAIN, [], new Date())]);
    };
    const collecting = new Map<string, Paid>();
    const come = async ({ terms }: Payment): Promise<void> => {
      world.peer.script.verify = async () => SPENT;
      world.peer.script.reconcile = async () => PAID;
      const result = await world.settleOnce({ terms }, store.ledger);
      assert.equal(result.kind, 'paid');
      if (result.kind === 'paid') collecting.set(terms.payId, result);
    };
    const leave = async ({ terms, collection }: Payment): Promise<void> => {
      const paid = collecting.get(terms.payId) ?? assert.fail();
      const facts = world.facts(paid, { requestId: terms.requestId });
      if (collection === 'delivered') await world.recorder(store.ledger).delivered(paid.record, facts);
      else {
        const failed = { failure: { code: 'backend_status_500' }, requestWritten: true, repeatable: false };
        await world.recorder(store.ledger).undelivered(paid.record, { ...facts, ...failed });
      }
    };
    // The two steps of a purchase keep their order, everything else is shuffled.
    const queues = payments.map((payment) => {
      const purchase = payment.collection === 'never' ? [] : [come, leave];
      const kinds = shuffled([...Array.from({ length: 3 }, () => 'search'), ...purchase.map(() => 'purchase')], draw);
      return kinds.map((kind) => {
        const step = kind === 'search' ? rebuild : (purchase.shift() ?? rebuild);
        return () => step(payment);
      });
    });
    while (queues.some((queue) => queue.length > 0)) {
      const open = queues.filter((queue) => queue.length > 0);
      // Some at the same time: a search must also work while gateways run.
      const next = shuffled(open, draw).slice(0, 1 + draw.below(3));
      await Promise.all(next.map((queue) => queue.shift()?.()));
    }
    return (await store.receipts.page({ limit: 500 })).receipts;
  }

  /** What must be equal in every order: the times of writing are not. */
  function essence(found: readonly Receipt[]) {
    return found
      .map(({ id, delivered, payment, metadata }) => {
        const { replayKey: key, amount, payer, externalReference, status } = payment ?? assert.fail('not of a payment');
        return { key, id, delivered, amount, payer, externalReference, status, recovered: metadata?.recovered };
      })
      .toSorted((a, b) => (a.key < b.key ? -1 : 1));
  }

  async function everyOrder(openStore: () => Promise<Store>): Promise<void> {
    const payments = Array.from({ length: PAYMENTS }, (_, i) => paymentOf(i));
    let expected: ReturnType<typeof essence> | undefined;
    for (let seed = 1; seed <= ORDERS; seed += 1) {
      const store = await openStore();
      const found = await receiptsAfter(seed, store, payments);
      assert.equal(found.length, PAYMENTS, `order ${seed}: a receipt a payment`);
      const essential = essence(found);
      for (const { terms, collection } of payments) {
        const own =
          essential.find(({ key }) => key === terms.payId) ?? assert.fail(`order ${seed}: a payment has no receipt`);
        assert.equal(own.delivered, collection === 'delivered');
        if (collection !== 'never') assert.equal(own.id, terms.receiptId);
      }
      expected ??= essential;
      assert.deepEqual(essential, expected, `order ${seed}`);
      const owed = await store.receipts.page({ limit: 500, delivered: false });
      assert.equal(owed.receipts.length, payments.filter(({ collection }) => collection !== 'delivered').length);
      await store.close();
    }
  }

  it('a payment has one receipt, and the receipts are equal, in SQLite', () =>
    everyOrder(async () => {
      const limits = { eventsMaxLength: 1_000, receiptsMaxLength: 1_000 };
      return openSqliteStore({ path: ':memory:', limits, now: () => NOON_MS });
    }));

  it('a payment has one receipt, and the receipts are equal, in Redis', async () => {
    const redis = await startRedis();
    let merchants = 0;
    try {
      await everyOrder(() => {
        merchants += 1;
        const limits = { eventsMaxLength: 1_000, receiptsMaxLength: 1_000 };
        return openRedisStore({ url: redis.url, merchantId: `shop-${merchants}`, limits });
      });
    } finally {
      await redis.stop();
    }
  });
});
