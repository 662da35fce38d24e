import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { BATCH, MOST_UNMINED, SENT_AT_ONCE, SIMULATION_FRESH_MS } from '../../../../src/payments/x402/local/lane.ts';
import { MOST_RAISED } from '../../../../src/payments/x402/local/relayer.ts';
import { BLOCKS_BEFORE_RAISE, RAISE_AFTER_MS } from '../../../../src/payments/x402/local/under-way.ts';
import { PRICE_UNITS } from '../signing.ts';
import { freshPayer, type LaneStage, type Ordered, openLaneStage, transfersIn } from './lane-stage.ts';

/** The outcome of a payment that no transaction was sent for. */
const unsent = (why: string) =>
  ({ kind: 'withdrawn', reason: 'provider_unavailable', cause: `nothing was sent: ${why}` }) as const;
const sizes = ({ node }: LaneStage): number[] => node.taken.map((transaction) => transfersIn(transaction).length);
const kinds = async (orders: readonly Ordered[]): Promise<string[]> =>
  (await Promise.all(orders.map((order) => order.ended()))).map(({ kind }) => kind);
const numbers = (of: readonly { readonly nonce?: number | undefined }[]): number[] => of.map(({ nonce = 0 }) => nonce);
/** All of them have been paid. */
const settle = async (orders: readonly Ordered[]): Promise<void> =>
  assert.deepEqual(new Set(await kinds(orders)), new Set(['settled']));
const settles = async (stage: LaneStage, orders: readonly Ordered[]): Promise<void> => {
  await stage.mineAll();
  await settle(orders);
};
/** The first order of a stage, once it is broadcast. */
const sent = async (stage: LaneStage): Promise<Ordered> => {
  const order = stage.order();
  await stage.offered(1);
  return order;
};
type Fees = Partial<Record<'maxFeePerGas' | 'maxPriorityFeePerGas', bigint | undefined>>;
/** By as much as a node asks of a replacement. */
const isRaised = (later: Fees = {}, earlier: Fees = {}): void => {
  for (const fee of ['maxFeePerGas', 'maxPriorityFeePerGas'] as const)
    assert.ok((later[fee] ?? 0n) * 8n >= (earlier[fee] ?? 0n) * 9n, fee);
};
const several = (count: number, one: () => Ordered): Ordered[] => Array.from({ length: count }, one);
/** One payment goes alone, and those that come while it is sent as one batch. */
const batchOf = async (stage: LaneStage, count: number): Promise<readonly [Ordered, ...Ordered[]]> => {
  const first = stage.order();
  const orders = several(count, () => stage.order());
  await stage.offered(2);
  return [first, ...orders];
};
/** Another process uses up the number of the first batch before the node gets it. */
const outrunBatch = ({ node }: LaneStage, meanwhile: (transfers: ReturnType<typeof transfersIn>) => void): void => {
  node.onBroadcast = (transaction) => {
    const transfers = transfersIn(transaction);
    if (transfers.length === 1) return 'takes';
    node.onBroadcast = () => 'takes';
    // The payment before it has its block too.
    node.mine();
    node.useNumber();
    meanwhile(transfers);
    return 'takes';
  };
};
/** Blocks and time pass, and everything stays in the pool. */
const pass = async ({ node, clock, look }: LaneStage): Promise<void> => {
  node.mine(() => true);
  await look();
  for (let block = 0n; block < BLOCKS_BEFORE_RAISE; block += 1n) node.mine(() => true);
  clock.now += RAISE_AFTER_MS;
  await look();
};

/** The same, and the number of broadcasts is then this. */
const raises = async (stage: LaneStage, offered: number): Promise<void> => {
  await pass(stage);
  await stage.offered(offered);
};

/** A block comes in which everything stays in the pool, and the gateway sees it. */
const passBlock = async ({ node, look }: LaneStage): Promise<void> => {
  node.mine(() => true);
  await look();
};

/** The lane has nothing more to do before the next look. */
async function settledDown({ node }: LaneStage): Promise<void> {
  for (let asked = -1; asked !== node.asked.length; ) {
    asked = node.asked.length;
    for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** A stage whose raises wait until their turn is given. */
async function raisesInTurn() {
  const turn = Promise.withResolvers<void>();
  const stage = await openLaneStage({
    relayer: (relayer) => ({
      ...relayer,
      async replace(...asked) {
        await turn.promise;
        return relayer.replace(...asked);
      },
    }),
  });
  return { stage, turn };
}

describe('the settlement lane', () => {
  let stage: LaneStage;
  beforeEach(async () => {
    stage = await openLaneStage();
  });

  it('each payment has the hash in its record before the broadcast, in a batch without the bytes', async () => {
    const orders = await batchOf(stage, 5);
    for (const { written, takenBefore } of orders) {
      assert.equal(written.length, 1);
      assert.deepEqual(takenBefore, [0], 'written before the node has it');
    }
    const [alone, ...batch] = orders.map(({ written }) => written[0]);
    const [first, second] = stage.node.taken;
    assert.deepEqual(alone, { hash: first?.hash, raw: first?.raw });
    for (const written of batch) assert.deepEqual(written, { hash: second?.hash });
    await settles(stage, orders);
  });

  it('only the log pair of each payment settles it: one that fails in a batch that succeeds is not paid', async () => {
    const [alone, empty, ...others] = await batchOf(stage, 3);
    stage.node.balances.set(empty?.payer ?? '', 0n);
    await settles(stage, [alone, ...others]);
    const [batch] = stage.node.mined.slice(-1);
    assert.deepEqual(await empty?.ended(), {
      kind: 'uncertain',
      cause: 'the transaction failed in its block',
      failed: true,
      transaction: batch?.hash,
    });
  });

  it('a number goes to another transaction only when the node has excluded the first', async () => {
    stage.node.onBroadcast = ({ nonce = 0 }) => (nonce === 0 ? 'takes and is silent' : 'takes');
    const silent = stage.order();
    const [uncertain] = await Promise.all([silent.ended(), stage.offered(1)]);
    assert.deepEqual([uncertain.kind, uncertain.transaction], ['uncertain', stage.node.taken[0]?.hash]);
    const next = stage.order();
    await stage.offered(2);
    assert.deepEqual(numbers(stage.node.offered), [0, 1]);
    await settles(stage, [next]);
    assert.equal(stage.node.mined.length, 2);
  });

  it('a transaction without a block gets higher fees, and whichever variant is mined settles its payments', async () => {
    for (const mined of [0, 1]) {
      const before = stage.node.taken.length;
      const order = stage.order();
      await stage.offered(before + 1);
      await pass(stage);
      await stage.offered(before + 2);
      const variants = stage.node.taken.slice(before);
      const [first, second] = variants;
      assert.equal(second?.nonce ?? 0, first?.nonce ?? 0);
      isRaised(second, first);
      const hashes = order.written.map(({ hash }) => hash);
      assert.deepEqual(
        hashes,
        variants.map(({ hash }) => hash),
      );
      assert.deepEqual(order.takenBefore, [0, 0]);
      // A node behind the balancer may still have the first one.
      if (mined === 0) stage.node.putBack(first);
      await stage.mineAll();
      assert.deepEqual(await order.ended(), { kind: 'settled', evidence: 'logs', transaction: variants[mined]?.hash });
    }
  });

  it('a node that calls it underpriced has an earlier variant in its pool: nothing is concluded from that', async () => {
    const order = await sent(stage);
    stage.node.onBroadcast = () => ({ refuses: 'replacement transaction underpriced' });
    await raises(stage, 2);
    await settles(stage, [order]);
    assert.equal((await order.ended()).transaction, stage.node.mined[0]?.hash);
    const hidden = stage.order();
    const outcome = await hidden.ended();
    assert.deepEqual([outcome.kind, outcome.transaction], ['uncertain', hidden.written[0]?.hash]);
  });

  it('a raise that the node calls underpriced may come into a block from another pool, and the next one is higher', async () => {
    const order = await sent(stage);
    stage.node.onBroadcast = () => ({ refuses: 'replacement transaction underpriced' });
    await raises(stage, 2);
    await raises(stage, 3);
    const [, refused, next] = stage.node.offered;
    isRaised(next, refused);
    stage.node.putBack(refused);
    await stage.mineAll();
    assert.deepEqual(await order.ended(), { kind: 'settled', evidence: 'logs', transaction: refused?.hash });
  });

  it('a batch that fails as a whole is tried in halves: one payer that burns its gas costs the others no payment', async () => {
    const orders = await batchOf(stage, 8);
    stage.node.burners.add(orders[3]?.payer ?? '');
    for (let block = 0; block < 8; block += 1) {
      const before = stage.node.mined.length;
      await stage.mineAll();
      if (stage.node.mined.length === before) break;
      await settledDown(stage);
    }
    await settle(orders);
    assert.deepEqual(sizes(stage).slice(0, 4), [1, 8, 4, 4]);
  });

  it(`at most ${BATCH} payments share a transaction`, async () => {
    const orders = await batchOf(stage, BATCH + 1);
    await stage.offered(3);
    assert.deepEqual(sizes(stage), [1, BATCH, 1]);
    await settles(stage, orders);
  });

  it(`up to ${SENT_AT_ONCE} transactions are sent at once, then one with each look, up to ${MOST_UNMINED}`, async () => {
    for (let sent = 1; sent <= SENT_AT_ONCE; sent += 1) {
      stage.order();
      await stage.offered(sent);
    }
    const late = several(3, () => stage.order());
    await settledDown(stage);
    assert.equal(stage.node.taken.length, SENT_AT_ONCE);
    await stage.look();
    await stage.offered(SENT_AT_ONCE + 1);
    assert.deepEqual(sizes(stage), [1, 1, 1, 3]);
    for (let sent = SENT_AT_ONCE + 2; sent <= MOST_UNMINED; sent += 1) {
      stage.order();
      await stage.look();
      await stage.offered(sent);
    }
    stage.order();
    await stage.look();
    await settledDown(stage);
    assert.equal(stage.node.taken.length, MOST_UNMINED);
    await stage.mineAll();
    await stage.offered(MOST_UNMINED + 1);
    await settle(late);
  });

  it('payers with code never share a transaction, also where a key signed', async () => {
    const coded = freshPayer();
    stage.node.coded.add(coded);
    const orders = [
      stage.order(),
      stage.order(),
      stage.order({ payer: coded }),
      stage.order({ signedBy: 'contract' }),
      stage.order(),
    ];
    await stage.offered(4);
    assert.deepEqual(sizes(stage), [1, 2, 1, 1]);
    const gas = stage.node.taken.map((transaction) => transaction.gas);
    assert.deepEqual(gas, [160_000n, 260_000n, 160_000n, 400_000n]);
    await settles(stage, orders);
  });

  it('each payment goes alone where there is no Multicall3', async () => {
    stage.node.hasMulticall = false;
    const orders = several(4, () => stage.order());
    await stage.offered(4);
    assert.deepEqual(sizes(stage), [1, 1, 1, 1]);
    await settles(stage, orders);
  });

  it(`what goes alone keeps to ${MOST_UNMINED} transactions without a block, and the rest has its turn after them`, async () => {
    stage.node.hasMulticall = false;
    const count = 2 * MOST_UNMINED + 1;
    const orders = several(count, () => stage.order({ verifiedMsAgo: SIMULATION_FRESH_MS }));
    for (const sent of [MOST_UNMINED, 2 * MOST_UNMINED, count]) {
      await stage.offered(sent);
      await settledDown(stage);
      assert.equal(stage.node.taken.length, sent);
      await stage.mineAll();
    }
    const payers = stage.node.mined.map((transaction) => transfersIn(transaction)[0]?.from);
    assert.deepEqual(
      payers,
      orders.map(({ payer }) => payer),
    );
    await settle(orders);
    assert.equal(stage.node.simulated, count, 'what waits for room is not simulated before');
  });

  it('a payer that signed more than it has pays what it has, and no gas is spent on the rest', async () => {
    const payer = freshPayer();
    stage.node.balances.set(payer, 2n * PRICE_UNITS);
    const [, ...orders] = [stage.order(), ...several(3, () => stage.order({ payer }))];
    await stage.offered(2);
    assert.deepEqual(sizes(stage), [1, 2]);
    await stage.mineAll();
    assert.deepEqual(await kinds(orders), ['settled', 'settled', 'refused']);
    assert.deepEqual(await orders[2]?.ended(), {
      kind: 'refused',
      reason: 'insufficient_funds',
      evidence: 'unsent',
    });
    assert.equal(stage.node.taken.length, 2);
    assert.equal(orders[2]?.written.length, 0);
  });

  it('a transfer that fails in a batch behind none of its payer goes alone, and a second one of the payer after it', async () => {
    const payer = freshPayer();
    stage.node.balances.set(payer, 2n * PRICE_UNITS);
    stage.node.failsJointly.add(payer);
    const orders = [
      stage.order(),
      stage.order(),
      stage.order(),
      ...several(2, () => stage.order({ payer, verifiedMsAgo: SIMULATION_FRESH_MS })),
    ];
    await stage.offered(3);
    await settledDown(stage);
    assert.deepEqual(sizes(stage), [1, 2, 1]);
    await stage.mineAll();
    await stage.offered(4);
    await stage.mineAll();
    assert.deepEqual(sizes(stage), [1, 2, 1, 1]);
    await settle(orders);
  });

  it('a verification holds for its settlement for a second, until its payer pays something else', async () => {
    const simulations = (): number => stage.node.simulated;
    const payer = freshPayer();
    stage.node.balances.set(payer, 3n * PRICE_UNITS);
    for (const [elapsedMs, again] of [
      [SIMULATION_FRESH_MS - 1, 0],
      [0, 1],
      [SIMULATION_FRESH_MS, 1],
    ] as const) {
      const before = { simulations: simulations(), taken: stage.node.taken.length };
      const order = stage.order({ payer, verifiedMsAgo: elapsedMs });
      await stage.offered(before.taken + 1);
      assert.equal(simulations() - before.simulations, again, `${elapsedMs} ms`);
      await settles(stage, [order]);
    }
  });

  it('a payment whose hash could not be kept is left out, and the others go under the same number', async () => {
    const [first, lost, ...others] = [stage.order(), stage.order({ losesFrom: 0 }), stage.order(), stage.order()];
    await stage.offered(2);
    const outcome = await lost?.ended();
    assert.deepEqual(outcome, unsent('fenced'));
    assert.deepEqual(sizes(stage), [1, 2]);
    assert.deepEqual(numbers(stage.node.taken), [0, 1]);
    for (const { written } of others) assert.equal(written.at(-1)?.hash, stage.node.taken[1]?.hash);
    await settles(stage, [first, ...others]);
  });

  it('what waited too long behind slow broadcasts is not sent', async () => {
    stage.node.hasMulticall = false;
    stage.node.onBroadcast = () => {
      stage.clock.now += 30_000;
      return 'takes';
    };
    const [, , ...late] = several(4, () => stage.order());
    for (const order of late) assert.deepEqual(await order.ended(), unsent('no turn in time'));
    assert.equal(stage.node.offered.length, 2);
  });

  it('a batch that a node refuses for want of gas money is tried by halves, and the rest is withdrawn', async () => {
    const [first] = await batchOf(stage, 1);
    await settles(stage, [first]);
    // Enough for one and a batch of four, and unknown to the gateway.
    stage.node.relayerWei = 2_000_000_000n * 620_000n;
    const [alone, ...batch] = await batchOf(stage, 8);
    const outcomes = () => Promise.all(batch.slice(4).map((order) => order.ended()));
    for (const [at, { kind, transaction }] of (await outcomes()).entries())
      assert.deepEqual([kind, transaction], ['withdrawn', batch[at + 4]?.written.at(-1)?.hash]);
    assert.deepEqual(sizes(stage).slice(2), [1, 4]);
    await settles(stage, [alone, ...batch.slice(0, 4)]);
  });

  it('only the chain refuses what a node refused for want of gas money: it may have it all the same', async () => {
    const [first] = await batchOf(stage, 1);
    await settles(stage, [first]);
    // Enough for two that go alone.
    stage.node.relayerWei = 2_000_000_000n * 320_000n;
    stage.node.onBroadcast = (transaction) => {
      const [, second] = transfersIn(transaction);
      if (second !== undefined) stage.node.balances.set(second.from, 0n);
      return 'takes';
    };
    const verifiedMsAgo = SIMULATION_FRESH_MS;
    const [, paid, empty] = several(3, () => stage.order({ verifiedMsAgo }));
    assert.equal((await empty?.ended())?.kind, 'uncertain');
    assert.equal(empty?.written.length, 1);
    await stage.mineAll();
    assert.equal((await paid?.ended())?.kind, 'settled');
  });

  it('a batch whose number another transaction used goes under the next one', async () => {
    outrunBatch(stage, () => undefined);
    const orders = await batchOf(stage, 3);
    await stage.offered(3);
    const [, refused, taken] = stage.node.offered;
    assert.deepEqual([refused?.nonce, taken?.nonce], [1, 2]);
    assert.deepEqual(refused?.data, taken?.data);
    await settles(stage, orders);
  });

  it('a batch with a spent authorization in it may have used its number itself: it is not sent again', async () => {
    outrunBatch(stage, ([, second]) => stage.node.spend(second?.nonce ?? ''));
    const [alone, ...batch] = await batchOf(stage, 3);
    for (const order of batch) {
      const { kind, transaction } = await order.ended();
      assert.deepEqual([kind, transaction], ['uncertain', stage.node.offered[1]?.hash]);
    }
    await settles(stage, [alone]);
    assert.equal(stage.node.offered.length, 2);
  });

  it('only the first transaction without a block gets higher fees: those behind it wait for it', async () => {
    const first = await sent(stage);
    const second = stage.order();
    await stage.offered(2);
    await pass(stage);
    await settledDown(stage);
    assert.deepEqual(numbers(stage.node.offered), [0, 1, 0]);
    stage.node.mine(({ nonce }) => nonce === 1);
    await stage.look();
    assert.equal((await first.ended()).kind, 'settled');
    await settledDown(stage);
    assert.deepEqual(numbers(stage.node.offered), [0, 1, 0, 1], 'its own blocks have passed');
    await settles(stage, [second]);
  });

  it(`fees rise to ${MOST_RAISED} times the present ones, and then the transaction is said to be held up`, async () => {
    const order = await sent(stage);
    for (let raises = 0; raises < 20; raises += 1) {
      assert.equal(stage.underWay.heldUp() === undefined, stage.node.taken.length > raises, `${raises}`);
      await pass(stage);
      await settledDown(stage);
    }
    const [first, ...raised] = stage.node.taken;
    const last = raised.at(-1);
    for (const fee of ['maxFeePerGas', 'maxPriorityFeePerGas'] as const) {
      assert.ok((last?.[fee] ?? 0n) > (MOST_RAISED - 1n) * (first?.[fee] ?? 0n), fee);
      assert.ok((last?.[fee] ?? 0n) <= MOST_RAISED * (first?.[fee] ?? 0n), fee);
    }
    assert.equal(order.written.length, stage.node.taken.length);
    await settles(stage, [order]);
    assert.equal(stage.underWay.heldUp(), undefined);
  });

  it('a transaction whose number has gone to another one gets no higher fees, and the one behind it does', async () => {
    const first = await sent(stage);
    const second = stage.order();
    await stage.offered(2);
    stage.node.useNumber();
    await pass(stage);
    await settledDown(stage);
    for (let raises = 0; raises < 2; raises += 1) {
      await pass(stage);
      await settledDown(stage);
    }
    assert.deepEqual(numbers(stage.node.offered), [0, 1, 0, 1, 1]);
    assert.equal(stage.underWay.unmined, 1);
    await settles(stage, [second]);
    stage.clock.now += 60_000;
    await stage.look();
    const outcome = await first.ended();
    assert.deepEqual([outcome.kind, outcome.transaction], ['uncertain', first.written[0]?.hash]);
    assert.deepEqual(stage.underWay.hashes(), []);
  });

  it('one fee far above the present one keeps the other, which is too low, from no raise', async () => {
    const order = await sent(stage);
    for (const fees of [
      { maxFeePerGas: 80_000_000_000n, maxPriorityFeePerGas: 1n },
      { maxFeePerGas: 1_000_000_000n, maxPriorityFeePerGas: 10_000n },
    ]) {
      const before = stage.node.offered.length;
      const offered = stage.node.offered.at(-1);
      stage.setFees(fees);
      await raises(stage, before + 1);
      const raised = stage.node.offered.at(-1);
      for (const fee of ['maxFeePerGas', 'maxPriorityFeePerGas'] as const) {
        assert.ok((raised?.[fee] ?? 0n) * 8n >= (offered?.[fee] ?? 0n) * 9n, fee);
        assert.ok((raised?.[fee] ?? 0n) >= fees[fee], fee);
      }
    }
    await settles(stage, [order]);
  });

  it(`fees rise after ${BLOCKS_BEFORE_RAISE} blocks and ${RAISE_AFTER_MS} ms from the last broadcast, and not before`, async () => {
    const order = await sent(stage);
    await passBlock(stage);
    for (const offered of [2, 3]) {
      stage.clock.now += RAISE_AFTER_MS;
      for (let block = 1n; block < BLOCKS_BEFORE_RAISE; block += 1n) await passBlock(stage);
      await settledDown(stage);
      assert.equal(stage.node.offered.length, offered - 1, 'a block is missing');
      stage.clock.now -= 1;
      await passBlock(stage);
      await settledDown(stage);
      assert.equal(stage.node.offered.length, offered - 1, 'a millisecond is missing');
      stage.clock.now += 1;
      await passBlock(stage);
      await stage.offered(offered);
      await passBlock(stage);
    }
    await settles(stage, [order]);
  });

  it('a raise without an answer may have arrived: its hash is looked for too', async () => {
    const order = await sent(stage);
    stage.node.onBroadcast = () => 'takes and is silent';
    await raises(stage, 2);
    await stage.mineAll();
    const [, raised] = stage.node.offered;
    assert.deepEqual(await order.ended(), { kind: 'settled', evidence: 'logs', transaction: raised?.hash });
  });

  it('a payment whose record takes no further hash is left out of the raise, and waits only for the earlier ones', async () => {
    const [alone, lost, ...others] = [stage.order(), stage.order({ losesFrom: 1 }), ...several(3, () => stage.order())];
    await stage.offered(2);
    stage.node.mine(({ nonce = 0 }) => nonce === 1);
    await stage.look();
    await raises(stage, 3);
    assert.deepEqual(sizes(stage), [1, 4, 3]);
    // Its payments are unspent, but only those that it carried may go again.
    const [burner] = others;
    stage.node.burners.add(burner?.payer ?? '');
    await stage.mineAll();
    const outcome = await lost.ended();
    assert.deepEqual([outcome.kind, outcome.transaction], ['uncertain', stage.node.taken[2]?.hash]);
    for (let block = 0; block < 4; block += 1) {
      await settledDown(stage);
      await stage.mineAll();
    }
    await settle([alone, ...others]);
    const sent = stage.node.taken.slice(2).flatMap((transaction) => transfersIn(transaction));
    assert.ok(sent.every(({ from }) => from !== lost.payer));
  });

  it('a number that is used anew, as the node lost its transaction and refuses it, is raised for the new one only', async () => {
    const first = await sent(stage);
    stage.node.lose();
    const lost = stage.node.taken[0]?.hash;
    stage.node.onBroadcast = ({ hash }) => (hash === lost ? { refuses: 'fee too low' } : 'takes');
    const second = stage.order();
    await stage.offered(3);
    for (let raises = 0; raises < 2; raises += 1) {
      await pass(stage);
      await settledDown(stage);
    }
    const [, again, anew, raised] = stage.node.offered;
    assert.deepEqual([again?.hash, anew?.nonce ?? 0, raised?.nonce ?? 0], [lost, 0, 0]);
    assert.deepEqual(raised?.data, anew?.data);
    assert.equal(first.written.length, 1);
    await settles(stage, [second]);
  });

  it('a tip of zero rises with nothing, one of a wei rises to two, and four times the present fees are offered', async () => {
    stage.setFees({ maxFeePerGas: 8_000_000_000n, maxPriorityFeePerGas: 800n });
    const order = await sent(stage);
    stage.setFees({ maxFeePerGas: 2_250_000_000n, maxPriorityFeePerGas: 225n });
    await raises(stage, 2);
    assert.equal(stage.node.offered.at(-1)?.maxFeePerGas, 9_000_000_000n);
    await settles(stage, [order]);
    for (const [tip, raisedTip] of [
      [1n, 2n],
      [0n, undefined],
    ]) {
      stage.setFees({ maxFeePerGas: 2_000_000_000n, maxPriorityFeePerGas: tip ?? 0n });
      const before = stage.node.offered.length;
      const next = stage.order();
      await stage.offered(before + 1);
      await pass(stage);
      await stage.offered(before + 2);
      assert.equal(stage.node.offered.at(-1)?.maxPriorityFeePerGas, raisedTip);
      for (let raises = 0; raises < 20; raises += 1) {
        await pass(stage);
        await settledDown(stage);
      }
      assert.match(stage.underWay.heldUp() ?? '', /4 times the present fees/);
      await settles(stage, [next]);
    }
  });

  it('what has no block in time is uncertain with its newest hash, and its number is used up for those behind it', async () => {
    const order = await sent(stage);
    await raises(stage, 2);
    stage.clock.now += 60_000;
    await stage.look();
    const outcome = await order.ended();
    assert.deepEqual([outcome.kind, outcome.transaction], ['uncertain', order.written[1]?.hash]);
    assert.equal(stage.underWay.unmined, 1);
    const behind = stage.order();
    await stage.offered(3);
    await raises(stage, 4);
    const [late, , empty] = stage.node.offered.slice(1);
    assert.deepEqual([empty?.nonce ?? 0, transfersIn(empty ?? {})], [late?.nonce ?? 0, []]);
    assert.deepEqual([empty?.to, empty?.value ?? 0n], [stage.relayer, 0n]);
    assert.ok((empty?.maxFeePerGas ?? 0n) * 8n >= (late?.maxFeePerGas ?? 0n) * 9n);
    assert.equal(order.written.length, 2);
    await settles(stage, [behind]);
    assert.equal(stage.node.mined.length, 2);
    assert.deepEqual(stage.underWay.hashes(), []);
  });

  it('what has no block in time is forgotten once it is in one', async () => {
    const order = stage.order();
    const endsAt = stage.clock.now + 60_000;
    await stage.offered(1);
    await raises(stage, 2);
    stage.clock.now = endsAt;
    await stage.look();
    assert.equal((await order.ended()).kind, 'uncertain');
    await stage.mineAll();
    assert.deepEqual(stage.underWay.hashes(), []);
    assert.equal(stage.node.offered.length, 2);
  });

  it('writes no hash over that of a transaction that came into a block before its fees were raised', async () => {
    const { stage, turn } = await raisesInTurn();
    const order = await sent(stage);
    await pass(stage);
    await settles(stage, [order]);
    turn.resolve();
    await settledDown(stage);
    assert.equal(order.written.length, 1);
    assert.equal(stage.node.offered.length, 1);
  });

  it('gives payments the next number where another process with the key was first in the pool', async () => {
    const first = await openLaneStage();
    const second = await openLaneStage({
      rpc: (rpc) => ({ ...rpc, call: (method, params) => first.node.call(method, params) }),
    });
    const payer = freshPayer();
    first.node.balances.set(payer, PRICE_UNITS);
    const orders = [first.order(), second.order({ payer })];
    await first.offered(3);
    first.node.mine();
    await Promise.all([first.look(), second.look()]);
    for (const order of orders) assert.equal((await order.ended()).kind, 'settled');
  });

  it('writes no hash over that of a batch that failed as a whole before its fees were raised', async () => {
    const { stage, turn } = await raisesInTurn();
    const orders = [stage.order(), stage.order(), stage.order()];
    await stage.offered(2);
    stage.node.mine(({ nonce = 0 }) => nonce === 1);
    await stage.look();
    await pass(stage);
    stage.node.batchesRevert = true;
    await stage.mineAll();
    await stage.offered(4);
    turn.resolve();
    await settledDown(stage);
    assert.equal(stage.node.offered.length, 4);
    await stage.mineAll();
    for (const order of orders) assert.equal((await order.ended()).kind, 'settled');
    for (const { written } of orders.slice(1)) assert.equal(written.length, 2);
  });

  it('raises nothing after a look that could not read the receipts', async () => {
    let fails = false;
    const stage = await openLaneStage({
      rpc: (rpc) => ({
        ...rpc,
        async call(method, params) {
          if (fails && method === 'eth_getTransactionReceipt') throw new Error('no answer');
          return rpc.call(method, params);
        },
      }),
    });
    const order = await sent(stage);
    fails = true;
    await pass(stage);
    await settledDown(stage);
    assert.equal(stage.node.offered.length, 1, 'it may be in one of the blocks');
    fails = false;
    await raises(stage, 2);
    await settles(stage, [order]);
  });

  const CONFIRMATIONS = 3;
  const mineOne = async (stage: LaneStage): Promise<Ordered> => {
    const order = await sent(stage);
    await stage.mineAll();
    await settledDown(stage);
    return order;
  };

  it(`settles a payment once ${CONFIRMATIONS} blocks hold it, where so many confirmations are asked for`, async () => {
    const stage = await openLaneStage({ confirmations: CONFIRMATIONS });
    const order = await mineOne(stage);
    for (let blocks = 2; blocks <= CONFIRMATIONS; blocks += 1) {
      assert.equal(stage.underWay.hashes().length, 1, `${blocks - 1} of ${CONFIRMATIONS} blocks hold it`);
      assert.equal(stage.underWay.unmined, 0);
      await stage.mineAll();
      await settledDown(stage);
    }
    assert.equal((await order.ended()).kind, 'settled');
    assert.deepEqual(stage.underWay.hashes(), []);
  });

  it('forgets one that is in a block when its payments are late, whatever confirms it', async () => {
    const stage = await openLaneStage({ confirmations: CONFIRMATIONS });
    const order = await mineOne(stage);
    stage.clock.now += 60_000;
    await stage.mineAll();
    assert.notEqual(await order.ended(), undefined);
    assert.deepEqual(stage.underWay.hashes(), []);
  });

  it('raises the fees of one that a reorganisation took out of its block', async () => {
    const stage = await openLaneStage({ confirmations: CONFIRMATIONS });
    const order = await mineOne(stage);
    const [first] = stage.node.taken;
    stage.node.undo();
    stage.node.putBack(first);
    await raises(stage, 2);
    assert.equal(stage.underWay.unmined, 1);
    for (let blocks = 0; blocks < CONFIRMATIONS; blocks += 1) await stage.mineAll();
    assert.equal((await order.ended()).transaction, stage.node.taken[1]?.hash);
  });
});
