import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getAddress, numberToHex, padHex, toEventSelector } from 'viem';
import { findPayment, fromBlocks, MAX_BLOCKS_BACK, paymentsIn } from '../../../../src/payments/x402/chain/chain.ts';
import type { TransactionReceipt } from '../../../../src/payments/x402/chain/client.ts';
import { firstBlockSince } from '../../../../src/payments/x402/chain/payment-logs.ts';
import { freshAddress } from '../signing.ts';

type Hex = `0x${string}`;

const TRANSFER = toEventSelector('Transfer(address,address,uint256)');
const AUTHORIZATION_USED = toEventSelector('AuthorizationUsed(address,bytes32)');
const MINED = { transactionHash: `0x${'c'.repeat(64)}`, blockNumber: 7n } as const;
const payment = {
  asset: freshAddress(),
  from: freshAddress(),
  payTo: freshAddress(),
  nonce: `0x${'a1'.repeat(32)}` as Hex,
  value: '10000',
};
const { asset, from, payTo, nonce, value } = payment;
const otherNonce: Hex = `0x${'b2'.repeat(32)}`;

type Draft = Pick<TransactionReceipt['logs'][number], 'address' | 'topics' | 'data'>;
const inOrder = (drafts: readonly Draft[]) =>
  drafts.map((draft, logIndex) => ({ ...draft, logIndex })) as TransactionReceipt['logs'];
const used = (payer = from, spent = nonce): Draft => ({
  address: asset,
  topics: [AUTHORIZATION_USED, padHex(payer, { size: 32 }), spent],
  data: '0x',
});
const moved = (changes: { source?: Hex; to?: Hex; units?: string; by?: Hex } = {}): Draft => {
  const { source = from, to = payTo, units = value, by = asset } = changes;
  const data = numberToHex(BigInt(units), { size: 32 });
  const topics = [TRANSFER, padHex(source, { size: 32 }), padHex(to, { size: 32 })] as const;
  return { address: by, topics: [...topics], data };
};

/** An event of the asset that no rule names. */
const other: Draft = { address: asset, topics: [toEventSelector('Approval(address,address,uint256)')], data: '0x' };

describe('the log pair that proves a payment', () => {
  const rows: readonly (readonly [what: string, logs: readonly Draft[], finding: string])[] = [
    ['used and transferred to the payee', [used(), moved()], 'paid'],
    ['a log of another contract in between', [used(), moved({ by: freshAddress() }), moved()], 'paid'],
    ['another event of the asset in between', [used(), other, moved()], 'unclear'],
    ['second of a batch', [used(from, otherNonce), moved({ to: freshAddress() }), used(), moved()], 'paid'],
    ['used, nothing transferred', [used()], 'elsewhere'],
    ['transferred to the payer itself', [used(), moved({ to: from })], 'elsewhere'],
    ['transferred by another payer', [used(), moved({ source: freshAddress() })], 'elsewhere'],
    ['one unit less', [used(), moved({ units: '9999' })], 'elsewhere'],
    ['one unit more', [used(), moved({ units: '10001' })], 'elsewhere'],
    ['transferred in another token', [used(), moved({ by: freshAddress() })], 'elsewhere'],
    [
      'the transfer of the next authorization does not count for this one',
      [used(), moved({ to: from }), used(from, otherNonce), moved()],
      'elsewhere',
    ],
    ['the transfer before the use', [moved(), used()], 'unclear'],
    ['another nonce', [used(from, otherNonce), moved()], 'absent'],
    ['the nonce of another payer', [used(freshAddress()), moved()], 'absent'],
    ['the use logged by another contract', [{ ...used(), address: freshAddress() }, moved()], 'absent'],
    ['a plain transfer', [moved()], 'absent'],
    ['nothing', [], 'absent'],
  ];
  for (const [what, drafts, finding] of rows)
    it(`${what}: ${finding}`, () => {
      const logs = inOrder(drafts);
      const receipt = { ...MINED, status: 'success', logs: logs.toReversed() } as const;
      assert.equal(findPayment(receipt, payment), finding);
    });

  it('counts in a successful receipt only', () => {
    const logs = inOrder([used(), moved()]);
    assert.equal(findPayment({ ...MINED, status: 'reverted', logs }, payment), 'absent');
  });
});

describe('the payments that a receipt shows', () => {
  const shown = (drafts: readonly Draft[], status: TransactionReceipt['status'] = 'success') => {
    const logs = inOrder(drafts).toReversed();
    return paymentsIn({ ...MINED, status, logs }, { asset: getAddress(asset), payTo });
  };
  const another = freshAddress();
  it('are the pairs to the payee, each with its own payer, nonce and sum', () => {
    const logs = [
      used(),
      moved(),
      used(another, otherNonce),
      moved({ source: another, units: '7' }),
      used(another),
      moved({ source: another, to: freshAddress() }),
    ];
    assert.deepEqual(shown(logs), [
      { from, nonce, units: 10_000n },
      { from: another, nonce: otherNonce, units: 7n },
    ]);
  });
  const none: readonly (readonly [what: string, logs: readonly Draft[]])[] = [
    ['a plain transfer', [moved()]],
    ['an authorization that moved nothing', [used(), moved({ units: '0' })]],
    ['an authorization with no transfer', [used()]],
    ['a transfer by another payer', [used(), moved({ source: another })]],
    ['a transfer before the authorization', [moved(), used()]],
    ['an authorization and its transfer with another event between them', [used(), other, moved()]],
    ['a transfer that is not the next log', [used(), moved({ to: another }), moved()]],
    ['another token', [{ ...used(), address: another }, moved({ by: another })]],
  ];
  for (const [what, logs] of none) it(`${what}: none`, () => assert.deepEqual(shown(logs), []));
  it('are none when the transaction failed', () => assert.deepEqual(shown([used(), moved()], 'reverted'), []));
});

describe('the first block of a time', () => {
  // A block every other second, from second 100 on.
  const blockAt = async (number: bigint) => ({ number, timestamp: 100 + 2 * Number(number), baseFee: 0n });
  const rows: readonly (readonly [since: number, first: bigint])[] = [
    [0, 0n],
    [100, 0n],
    [101, 1n],
    [102, 1n],
    [2_100, 1_000n],
    [2_101, 1_001n],
  ];
  for (const [since, first] of rows)
    it(`${since} s is ${first}`, async () => {
      assert.equal(await firstBlockSince(since, await blockAt(1_000n), blockAt), first);
    });
});

describe('the search for a log', () => {
  const ranges = async (number: bigint, secondsBack: number, secondsPerBlock: number) => {
    const head = { number, timestamp: 2_000_000_000, baseFee: 0n };
    const found: { from: bigint; to: bigint }[] = [];
    const blockAt = async (at: bigint) => ({
      ...head,
      number: at,
      timestamp: head.timestamp - Number(number - at) * secondsPerBlock,
    });
    for await (const { fromBlock, toBlock } of fromBlocks(head, head.timestamp - secondsBack, blockAt))
      found.push({ from: BigInt(fromBlock), to: toBlock === 'latest' ? number : BigInt(toBlock) });
    return found;
  };

  it('covers a young chain from its first block in one query', async () => {
    assert.deepEqual(await ranges(40n, 600, 2), [{ from: 0n, to: 40n }]);
  });

  const rows: readonly (readonly [secondsBack: number, secondsPerBlock: number])[] = [
    [720, 2],
    [720, 0.25],
    [90_000, 12],
    [40_000, 1],
    [0, 2],
  ];
  for (const [secondsBack, secondsPerBlock] of rows)
    it(`reaches ${secondsBack} s back at ${secondsPerBlock} s a block, without gap or overlap, newest first`, async () => {
      const number = 50_000_000n;
      const found = await ranges(number, secondsBack, secondsPerBlock);
      assert.equal(found[0]?.to, number);
      for (const [index, range] of found.entries()) {
        assert.ok(range.to - range.from < 9_000n);
        const next = found[index + 1];
        if (next !== undefined) assert.equal(next.to, range.from - 1n);
      }
      assert.ok(number - (found.at(-1)?.from ?? number) >= BigInt(Math.floor(secondsBack / secondsPerBlock)));
    });

  it('gives up at a bound', async () => {
    const found = await ranges(50_000_000n, 10_000_000, 1);
    assert.equal(50_000_000n - (found.at(-1)?.from ?? 0n), MAX_BLOCKS_BACK);
  });
});
