import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { encodeFunctionData, type Hex } from 'viem';
import { fencingToken } from '../../../src/payments/settlement/attempt.ts';
import { createChain } from '../../../src/payments/x402/chain/chain.ts';
import { createRpc, type Rpc } from '../../../src/payments/x402/chain/node.ts';
import { recordRefund } from '../../../src/payments/x402/refund/record.ts';
import type { Store } from '../../../src/store/documents/store.ts';
import { type Chain, startChain } from '../../../tools/local-world/chain.ts';
import { TOKEN_ABI } from '../../../tools/local-world/contracts.ts';
import { REFUND } from '../../payments/ledger/samples.ts';
import { PRICE_UNITS } from '../../payments/x402/signing.ts';
import { startRedis } from '../../support/redis.ts';
import { type Owed, openRefundShop, type RefundShop } from './shop.ts';

const ends = new AsyncDisposableStack();
let chain: Chain;
let redis: string;
before(async () => {
  chain = ends.adopt(await startChain(), ({ stop }) => stop());
  redis = ends.adopt(await startRedis(), ({ stop }) => stop()).url;
});
after(() => ends.disposeAsync());

for (const kind of ['sqlite', 'redis'] as const)
  describe(`refunds of one shop that several operators record at once, ${kind}`, () => {
    let shop: RefundShop;
    before(async () => {
      shop = await openRefundShop(ends, { chain, ...(kind === 'redis' ? { redis } : {}) });
    });

    it('take no transfer for two payments', async () => {
      const first = await shop.owe();
      const owed = [first, await shop.owe('refundDue', { payer: first.payer })];
      const hash = await byHand(shop, first.payer);
      const meet = meeting(owed.length);
      const outcomes = await Promise.all(owed.map((one) => record(shop, one, hash, { meet })));
      assert.deepEqual(outcomes.map(({ kind: end }) => end).toSorted(), ['left', 'refunded']);
      const states = await Promise.all(owed.map((one) => stateOf(shop, one)));
      assert.deepEqual(
        states,
        outcomes.map(({ kind: end }) => (end === 'refunded' ? 'refunded' : 'refundDue')),
      );
      // A second transfer is another one, also to the same payer.
      const left = owed[states.indexOf('refundDue')] ?? first;
      assert.equal((await record(shop, left, hash)).kind, 'left');
      assert.equal((await record(shop, left, await byHand(shop, first.payer))).kind, 'refunded');
    });

    it('are written once where both record the same transfer for the same payment', async () => {
      const owed = await shop.owe();
      const hash = await byHand(shop, owed.payer);
      const meet = meeting(2);
      const outcomes = await Promise.all([record(shop, owed, hash, { meet }), record(shop, owed, hash, { meet })]);
      for (const outcome of outcomes) assert.partialDeepStrictEqual(outcome, { kind: 'refunded', transaction: hash });
    });

    it('are not recorded when a transfer was signed for them meanwhile', async () => {
      const owed = await shop.owe();
      const hash = await byHand(shop, owed.payer);
      const signed = () => shop.withStore((store) => sign(store, owed.payId));
      assert.deepEqual(await record(shop, owed, hash, { meet: signed }), {
        kind: 'pending',
        why: 'it is refunding by now',
      });
      assert.equal(await stateOf(shop, owed), 'refunding');
    });

    it('are recorded once enough blocks confirm the transfer', async () => {
      const owed = await shop.owe();
      const hash = await byHand(shop, owed.payer);
      assert.deepEqual(await record(shop, owed, hash, { confirmations: 3 }), {
        kind: 'pending',
        why: `${hash} has too few blocks above it`,
      });
      await chain.request('anvil_mine', ['0x2']);
      assert.equal((await record(shop, owed, hash, { confirmations: 3 })).kind, 'refunded');
    });
  });

/** An operator with a store of its own. `meet`: before it learns what the transaction did. */
function record(
  shop: RefundShop,
  { payId }: Owed,
  hash: string,
  { meet, confirmations = 1 }: { readonly meet?: () => Promise<unknown>; readonly confirmations?: number } = {},
) {
  return shop.withStore(async ({ ledger, secrets }) => {
    const node = createRpc(chain.rpcUrl);
    const rpc: Rpc = {
      ...node,
      async call(method, params, deadlineMs) {
        const answer = await node.call(method, params, deadlineMs);
        if (method === 'eth_getTransactionReceipt' && params[0] === hash) await meet?.();
        return answer;
      },
    };
    try {
      const terms = { ...shop.terms, confirmations };
      return await recordRefund({ ledger, claims: secrets, rpc, chain: createChain(node), terms }, payId, hash);
    } finally {
      await node.close();
    }
  });
}

/** Lets callers go on when so many have come. */
function meeting(count: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let come = 0;
  return () => {
    come += 1;
    if (come === count) resolve();
    return promise;
  };
}

function byHand({ payee }: RefundShop, payer: string): Promise<string> {
  const args = [payer as Hex, PRICE_UNITS] as const;
  return chain.send(
    payee.address,
    chain.token.address,
    encodeFunctionData({ abi: TOKEN_ABI, functionName: 'transfer', args }),
  );
}

async function sign({ ledger }: Store, payId: string) {
  const record = (await ledger.read(payId)) ?? assert.fail();
  const facts = { refundTransaction: REFUND };
  return ledger.advance({ ...fencingToken(record), to: 'refunding', leaseMs: 0, facts, events: [] });
}

function stateOf(shop: RefundShop, { payId }: Owed) {
  return shop.withStore(async ({ ledger }) => (await ledger.read(payId))?.state);
}
