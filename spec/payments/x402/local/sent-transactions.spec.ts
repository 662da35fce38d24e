import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RpcRefusal } from '../../../../src/payments/x402/chain/rpc.ts';
import {
  createSentTransactions,
  type Exclusion,
  exclusionOf,
  isKnown,
  isUnderpriced,
  NODE_LAG_MS,
  REMEMBERED_CHARACTERS,
  REMEMBERED_TRANSACTIONS,
} from '../../../../src/payments/x402/local/relayer.ts';

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
