import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { encodeAbiParameters, encodeEventTopics, type Hex, parseTransaction } from 'viem';
import { type Rpc, RpcRefusal } from '../../../../src/payments/x402/chain/rpc.ts';
import { TOKEN_ABI } from '../../../../tools/local-world/contracts.ts';
import {
  EVERY_HASH_COUNTS,
  type LaneRule,
  LOGS_DECIDE,
  NUMBER_IS_KEPT,
  REVERT_IS_TRIED_AGAIN,
  UNDERPRICED_IS_SENT,
  WRITES_AHEAD,
} from './lane-rules.ts';
import { type Mistake, openLaneStage } from './lane-stage.ts';
import { ASSET, type PoolNode, transfersIn } from './pool-node.ts';

/** Wrong lanes, each with the rule that has to notice it. */
const MUTANTS: readonly (readonly [what: string, mistake: Mistake, rule: LaneRule, notices: RegExp])[] = [
  [
    'uses a number anew although nothing excluded its transaction',
    {
      rpc: (rpc) =>
        asking(rpc, (method, [account, block]) => [method, [account, block === 'pending' ? 'latest' : block]]),
    },
    NUMBER_IS_KEPT,
    /never came|\b0,\n.*\b1\b/s,
  ],
  [
    'concludes from the status of a transaction',
    {
      rpc: (rpc, node) =>
        answering(rpc, (method, answer) => (method.endsWith('Receipt') ? paidByStatus(answer, node) : answer)),
    },
    LOGS_DECIDE,
    /settled/,
  ],
  [
    'broadcasts before it writes ahead',
    {
      relayer: (relayer, node) => ({
        ...relayer,
        send: (call, writeAhead) =>
          relayer.send(call, async (signed) => {
            await node.call('eth_sendRawTransaction', [signed.raw]);
            return writeAhead(signed);
          }),
      }),
    },
    WRITES_AHEAD,
    /written before the node has it/,
  ],
  [
    'forgets the hash of a transaction whose fees have risen',
    {
      relayer: (relayer) => ({
        ...relayer,
        async replace(earlier, ...asked) {
          const sending = await relayer.replace(earlier, ...asked);
          return sending.kind === 'sent' ? { ...sending, hash: earlier.hash } : sending;
        },
      }),
    },
    EVERY_HASH_COUNTS,
    /no outcome/,
  ],
  [
    'takes what is called underpriced as never sent',
    {
      rpc: (rpc) => ({
        ...rpc,
        async call(method, params) {
          try {
            return await rpc.call(method, params);
          } catch (error) {
            const isUnderpriced = error instanceof RpcRefusal && /underpriced/.test(error.message);
            throw isUnderpriced ? new RpcRefusal(method, error.code, 'insufficient funds', false) : error;
          }
        },
      }),
    },
    UNDERPRICED_IS_SENT,
    /withdrawn/,
  ],
  [
    'takes a batch that failed as a whole as refused',
    {
      reverted(payments) {
        for (const payment of payments) payment.end({ kind: 'refused', reason: 'reverted', evidence: 'unsent' });
        return true;
      },
    },
    REVERT_IS_TRIED_AGAIN,
    /refused/,
  ],
];

describe('a check for wrong lanes', () => {
  for (const [what, mistake, rule, notices] of MUTANTS)
    it(`catches one that ${what}`, async () => {
      const stage = await openLaneStage(mistake);
      await assert.rejects(rule.play(stage), ({ message }: Error) => notices.test(message));
    });
});

type Params = readonly unknown[];

function asking(rpc: Rpc, change: (method: string, params: Params) => readonly [string, Params]): Rpc {
  return { ...rpc, call: (method, params) => rpc.call(...change(method, params)) };
}

function answering(rpc: Rpc, change: (method: string, answer: unknown) => unknown): Rpc {
  return {
    ...rpc,
    call: async (method, params) => change(method, await rpc.call(method, params)) as Awaited<ReturnType<Rpc['call']>>,
  };
}

/** The receipt with the logs of every transfer, if its status is a success. */
function paidByStatus(answer: unknown, { taken }: PoolNode): unknown {
  const receipt = answer as {
    readonly status: string;
    readonly transactionHash: Hex;
    readonly blockNumber: Hex;
  } | null;
  const raw = taken.find(({ hash }) => hash === receipt?.transactionHash)?.raw;
  if (receipt?.status !== '0x1' || raw === undefined) return answer;
  const { transactionHash, blockNumber } = receipt;
  const logs = transfersIn(parseTransaction(raw)).flatMap(({ from, to, value, nonce }) => [
    {
      topics: encodeEventTopics({
        abi: TOKEN_ABI,
        eventName: 'AuthorizationUsed',
        args: { authorizer: from as Hex, nonce },
      }),
      data: '0x',
    },
    {
      topics: encodeEventTopics({ abi: TOKEN_ABI, eventName: 'Transfer', args: { from: from as Hex, to: to as Hex } }),
      data: encodeAbiParameters([{ type: 'uint256' }], [value]),
    },
  ]);
  const place = { address: ASSET, transactionHash, blockNumber };
  return { ...receipt, logs: logs.map((log, at) => ({ ...log, ...place, logIndex: `0x${at.toString(16)}` })) };
}
