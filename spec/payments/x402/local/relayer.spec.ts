import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { clientOver, RpcRefusal, readHead } from '../../../../src/payments/x402/chain/node.ts';
import {
  createSentTransactions,
  type Exclusion,
  exclusionOf,
  type FeeWatch,
  HEAD_FRESH_MS,
  isKnown,
  isUnderpriced,
  LOOK_AGAIN_MS,
  NODE_LAG_MS,
  REMEMBERED_CHARACTERS,
  REMEMBERED_TRANSACTIONS,
  TIP_FRESH_MS,
  watchFees,
  watchFunds,
} from '../../../../src/payments/x402/local/relayer.ts';
import { PoolNode } from './lane-stage.ts';

const TIP_WEI = 1_000n;
const BASE_WEI = 1_000_000_000n;

describe('the fees of the relayer', () => {
  let node: PoolNode;
  let fees: FeeWatch;
  let clock = 0;
  beforeEach(() => {
    clock = 0;
    node = new PoolNode();
    const client = clientOver((method, params) => node.call(method, params));
    fees = watchFees({ client, head: () => readHead(client), now: () => clock });
  });

  it('leave room for a base fee of twice the newest one', async () => {
    assert.deepEqual(await fees.current(), { maxPriorityFeePerGas: TIP_WEI, maxFeePerGas: 2n * BASE_WEI + TIP_WEI });
  });

  it('are read once while a block is fresh, and not at all where blocks are seen', async () => {
    await fees.current();
    clock = HEAD_FRESH_MS - 1;
    await fees.current();
    assert.equal(node.asked.filter((method) => method === 'eth_getBlockByNumber').length, 1);
    fees.saw({ number: 2n, timestamp: 0, baseFee: 7n });
    clock += HEAD_FRESH_MS - 1;
    assert.equal((await fees.current()).maxFeePerGas, 14n + TIP_WEI);
    clock += 1;
    assert.equal((await fees.current()).maxFeePerGas, 2n * BASE_WEI + TIP_WEI);
  });

  it('ask for the tip again after a while', async () => {
    for (const at of [0, TIP_FRESH_MS - 1, TIP_FRESH_MS]) {
      clock = at;
      await fees.current();
    }
    assert.equal(node.asked.filter((method) => method === 'eth_maxPriorityFeePerGas').length, 2);
  });

  it('offer one gwei where the node suggests no tip', async () => {
    const client = clientOver(async (method) => {
      throw new RpcRefusal(method, -32_601, 'method not found', false);
    });
    const plain = watchFees({ client, head: async () => ({ number: 1n, timestamp: 0, baseFee: 0n }) });
    assert.equal((await plain.current()).maxPriorityFeePerGas, 1_000_000_000n);
  });
});

const GAS = 10n;

describe('the gas money of a relayer', () => {
  let clock = 0;
  let looks = 0;
  let balance: bigint | 'silent' = 0n;
  let funds: ReturnType<typeof watchFunds>;

  beforeEach(() => {
    clock = 0;
    looks = 0;
    balance = 100n;
    funds = watchFunds(
      async () => {
        looks += 1;
        if (balance === 'silent') throw new Error('no answer');
        return { balance, maxFeePerGas: 10n };
      },
      () => clock,
    );
  });

  it('is read once, and never again while there is enough', async () => {
    for (let call = 0; call < 5; call += 1) {
      assert.equal(await funds.isShort(GAS), false);
      clock += 10 * LOOK_AGAIN_MS;
    }
    assert.equal(looks, 1);
  });

  it('is short by the gas that is wanted: what a balance pays to the last wei is enough', async () => {
    assert.equal(await funds.isShort(GAS), false);
    assert.equal(await funds.isShort(GAS + 1n), true);
  });

  it('is read once a second while it is short, by all calls together', async () => {
    balance = 99n;
    assert.deepEqual(await Promise.all([funds.isShort(GAS), funds.isShort(GAS), funds.isShort(GAS)]), [
      true,
      true,
      true,
    ]);
    clock = LOOK_AGAIN_MS - 1;
    balance = 100n;
    assert.equal(await funds.isShort(GAS), true);
    assert.equal(looks, 1);
    clock = LOOK_AGAIN_MS;
    assert.equal(await funds.isShort(GAS), false);
    assert.equal(looks, 2);
  });

  it('is short for a second after a node refused, whatever the balance: its pool may hold other transactions', async () => {
    assert.equal(await funds.isShort(GAS), false);
    funds.refused();
    assert.equal(await funds.isShort(GAS), true);
    clock = LOOK_AGAIN_MS;
    assert.equal(await funds.isShort(GAS), false);
  });

  it('is enough again with the next readiness check', async () => {
    funds.refused();
    await funds.look();
    assert.equal(await funds.isShort(GAS), false);
  });

  it('is not short because the node is silent, and stays short when it was', async () => {
    balance = 'silent';
    assert.equal(await funds.isShort(GAS), false);
    balance = 0n;
    assert.equal(await funds.isShort(GAS), true);
    balance = 'silent';
    clock = LOOK_AGAIN_MS;
    assert.equal(await funds.isShort(GAS), true);
  });
});

const refusal = (message: string): RpcRefusal => new RpcRefusal('eth_sendRawTransaction', -32_000, message, false);

describe('the answer of a node to a broadcast', () => {
  const excluded: readonly (readonly [message: string, exclusion: Exclusion])[] = [
    [
      'insufficient funds for gas * price + value: balance 0, tx cost 480000000000000, overshot 480000000000000',
      'unfunded',
    ],
    ['insufficient funds for gas * price + value: balance 9, queued cost 8, tx cost 4, overshot 3', 'unfunded'],
    ['Insufficient funds for gas * price + value', 'unfunded'],
    ['insufficient funds for l1Cost + gas * price + value', 'unfunded'],
    ['InsufficientFunds, Account balance: 0, cumulative cost: 1', 'unfunded'],
    ['Upfront cost exceeds account balance', 'unfunded'],
    ['intrinsic gas too low: gas 21000, minimum needed 53000', 'short_of_gas'],
    ['Intrinsic gas exceeds gas limit', 'short_of_gas'],
    ['insufficient gas for floor data gas cost: gas 21000, minimum needed 26000', 'short_of_gas'],
    ['nonce too low: next nonce 8, tx nonce 7', 'outrun'],
    ['OldNonce, Current nonce: 8, nonce of rejected tx: 7', 'outrun'],
  ];
  for (const [message, exclusion] of excluded)
    it(`excludes it: ${message}`, () => assert.equal(exclusionOf(refusal(message)), exclusion));

  for (const message of [
    'already known',
    'AlreadyKnown',
    'transaction already imported',
    'replacement transaction underpriced',
    'transaction underpriced',
    'max fee per gas less than block base fee',
    'txpool is full',
    'nonce too high',
    'rate limit exceeded',
    'internal error',
    '',
  ])
    it(`leaves it open: ${message === '' ? 'nothing' : message}`, () =>
      assert.equal(exclusionOf(refusal(message)), undefined));

  it('leaves it open where no answer came, whatever the error message', () => {
    assert.equal(exclusionOf(new Error('insufficient funds for gas * price + value')), undefined);
    assert.equal(isKnown(new Error('already known')), false);
    assert.equal(isKnown(refusal('already known')), true);
  });
});

describe('a replacement that the node calls underpriced', () => {
  for (const [message, is] of [
    ['replacement transaction underpriced', true],
    ['Transaction underpriced replacement', true],
    ['could not replace existing tx', true],
    ['ReplacementNotAllowed', true],
    ['transaction underpriced', false],
    ['already known', false],
    ['insufficient funds', false],
  ] as const)
    it(`is ${is ? 'one' : 'none'}: ${message}`, () => assert.equal(isUnderpriced(refusal(message)), is));
});

/** A node that takes everything but what `answers` refuses, and what it was given. */
function node(answers: Readonly<Record<string, string>> = {}) {
  const given: string[] = [];
  return {
    given,
    async broadcast(raw: string) {
      given.push(raw);
      const refusal = answers[raw];
      if (refusal === 'silent') throw new Error('no answer');
      if (refusal !== undefined) throw new RpcRefusal('eth_sendRawTransaction', -32_000, refusal, false);
    },
  };
}

function sentUpTo(numbers: readonly number[], answers?: Readonly<Record<string, string>>) {
  const peer = node(answers);
  const clock = { now: 0 };
  const sent = createSentTransactions(peer.broadcast, () => clock.now);
  for (const number of numbers) sent.add(number, `tx${number}`);
  return { sent, given: peer.given, clock };
}

describe('the number of the next transaction', () => {
  const rows: readonly (readonly [
    what: string,
    sent: readonly number[],
    pending: number,
    answers: Readonly<Record<string, string>>,
    number: number,
    given: readonly string[],
  ])[] = [
    ['is the node’s count at first', [], 7, {}, 7, []],
    ['is the node’s count when it has all', [5, 6], 7, {}, 7, []],
    ['is the node’s count when others use the account too', [5, 6], 9, {}, 9, []],
    ['follows what was lost, which is sent again in its order', [5, 6, 7], 6, {}, 8, ['tx6', 'tx7']],
    ['follows our own when the node has it and does not count it', [5, 6], 5, { tx5: 'already known' }, 7, ['tx5']],
    ['the same with the message of other nodes', [5], 5, { tx5: 'transaction already imported' }, 6, ['tx5']],
    ['follows our own when the count was behind', [5, 6], 5, { tx5: 'nonce too low' }, 7, ['tx5', 'tx6']],
    [
      'follows our own when the pool has another variant of it',
      [5, 6],
      5,
      { tx5: 'replacement transaction underpriced' },
      7,
      ['tx5'],
    ],
    ['is one that the node refuses to fill again', [5, 6], 5, { tx5: 'insufficient funds' }, 5, ['tx5']],
    ['is the first such, after what it takes', [5, 6, 7], 5, { tx6: 'fee too low' }, 6, ['tx5', 'tx6']],
  ];
  for (const [what, numbers, pending, answers, expected, given] of rows)
    it(what, async () => {
      const stage = sentUpTo(numbers, answers);
      assert.equal(await stage.sent.nextNumber(pending), expected);
      assert.deepEqual(stage.given, given);
    });

  it('has what was sent last under it', () => {
    const { sent } = sentUpTo([5]);
    assert.deepEqual([sent.holds(5, 'tx5'), sent.holds(5, 'other'), sent.holds(6, 'tx6')], [true, false, false]);
    sent.add(5, 'raised');
    assert.deepEqual([sent.holds(5, 'tx5'), sent.holds(5, 'raised')], [false, true]);
  });

  it('is not given while the node does not answer whether it has what is missing', async () => {
    const { sent } = sentUpTo([5], { tx5: 'silent' });
    await assert.rejects(sent.nextNumber(5), /no answer/);
  });

  it('forgets what was refused, and what followed it', async () => {
    const { sent, given } = sentUpTo([5, 6], { tx5: 'insufficient funds' });
    assert.equal(await sent.nextNumber(5), 5);
    sent.add(5, 'anew');
    assert.equal(await sent.nextNumber(5), 6);
    assert.deepEqual(given, ['tx5', 'anew']);
  });

  it('is ours while a count below numbers of another process may be a lag, and the node’s from then on', async () => {
    const { sent, clock, given } = sentUpTo([5, 7]);
    clock.now = 100;
    for (const [at, number] of [
      [100, 8],
      [100 + NODE_LAG_MS - 1, 8],
      [100 + NODE_LAG_MS, 6],
    ] as const) {
      clock.now = at;
      assert.equal(await sent.nextNumber(6), number);
    }
    assert.deepEqual(given, [], 'those of others are not ours to send');
  });

  it('counts a lag from when it began, and a count that is right ends it', async () => {
    const { sent, clock } = sentUpTo([5, 7]);
    assert.equal(await sent.nextNumber(6), 8);
    clock.now = NODE_LAG_MS - 1;
    assert.equal(await sent.nextNumber(8), 8);
    clock.now = NODE_LAG_MS;
    assert.equal(await sent.nextNumber(6), 8);
  });

  it('forgets the oldest of long ones too', async () => {
    const { sent, clock, given } = sentUpTo([]);
    const long = 'x'.repeat(REMEMBERED_CHARACTERS / 2);
    for (const number of [0, 1, 2]) sent.add(number, long);
    assert.equal(await sent.nextNumber(1), 3);
    assert.equal(given.length, 2);
    await sent.nextNumber(0);
    clock.now = NODE_LAG_MS;
    assert.equal(await sent.nextNumber(0), 0);
  });

  for (const [lost, number, again] of [
    [REMEMBERED_TRANSACTIONS, REMEMBERED_TRANSACTIONS + 1, REMEMBERED_TRANSACTIONS],
    [REMEMBERED_TRANSACTIONS + 1, 0, 0],
  ] as const)
    it(`${lost} lost ones: ${again} are sent again, the next is ${number}`, async () => {
      const { sent, clock, given } = sentUpTo(Array.from({ length: REMEMBERED_TRANSACTIONS + 1 }, (_, at) => at));
      const pending = REMEMBERED_TRANSACTIONS + 1 - lost;
      await sent.nextNumber(pending);
      clock.now = NODE_LAG_MS;
      given.length = 0;
      assert.equal(await sent.nextNumber(pending), number);
      assert.equal(given.length, again);
    });
});
