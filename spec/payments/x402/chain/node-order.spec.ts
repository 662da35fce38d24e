import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OversizedAnswer } from '../../../../src/payments/x402/chain/http-json.ts';
import { FIRST_NODE_AGAIN_MS, inOrder } from '../../../../src/payments/x402/chain/node-order.ts';
import { type Rpc, RpcRefusal } from '../../../../src/payments/x402/chain/rpc.ts';

const refused = (code: number, message: string, reverted = false, status = 200) =>
  new RpcRefusal('eth_call', code, message, reverted, status);

describe('several nodes of a chain', () => {
  const asked: string[] = [];
  let clock = 0;
  /** A node that fails with these errors, and then answers with its name. */
  const node = (name: string, ...errors: readonly Error[]): Rpc => {
    const left = [...errors];
    return {
      async call(method) {
        asked.push(`${name} ${method}`);
        const error = left.shift();
        if (error !== undefined) throw error;
        return name;
      },
      close: async () => undefined,
    };
  };
  const order = (nodes: readonly Rpc[], compare: (node: Rpc) => Promise<void> = async () => undefined): Rpc => {
    asked.length = 0;
    return inOrder(nodes, { compare, now: () => clock });
  };
  const down = new Error('ECONNRESET');

  for (const [what, error] of [
    ['a broken connection', down],
    ['a limit', refused(-32_005, 'rate limited')],
    ['a fault of the node', refused(-32_603, 'internal error')],
    ['a refusal under status 502', refused(-32_000, 'no upstream', false, 502)],
  ] as const)
    it(`a reading is tried again after ${what}`, async () => {
      assert.equal(await order([node('a', error)]).call('eth_call', []), 'a');
      assert.equal(asked.length, 2);
    });

  for (const [what, error] of [
    ['a revert', refused(3, 'execution reverted', true)],
    ['a method that the node lacks', refused(-32_601, 'method not found')],
    ['an answer that is too large', new OversizedAnswer(1)],
    ['parameters that one node refuses', refused(-32_602, 'invalid params')],
  ] as const)
    it(`${what} is an answer, and no reason to ask again`, async () => {
      await assert.rejects(order([node('a', error)]).call('eth_call', []), error);
      assert.equal(asked.length, 1);
    });

  it('gives up after five tries, or where the next one would come after the deadline', async () => {
    const errors = Array.from({ length: 9 }, () => down);
    await assert.rejects(order([node('a', ...errors)]).call('eth_call', []), down);
    assert.equal(asked.length, 5);
    await assert.rejects(order([node('a', ...errors)]).call('eth_call', [], 40), down);
    assert.equal(asked.length, 1);
  });

  it('sends a transaction once, to the node that answered last', async () => {
    const rpc = order([node('a', down), node('b')]);
    assert.equal(await rpc.call('eth_getTransactionCount', []), 'b');
    assert.equal(await rpc.call('eth_sendRawTransaction', []), 'b');
    await assert.rejects(order([node('a', down), node('b')]).call('eth_sendRawTransaction', []), down);
    assert.deepEqual(asked, ['a eth_sendRawTransaction']);
  });

  it('asks the next node after any refusal that is no result, and the first one again later', async () => {
    const rpc = order([node('a', refused(-32_600, 'must be authenticated')), node('b')]);
    assert.equal(await rpc.call('eth_call', []), 'b');
    clock += FIRST_NODE_AGAIN_MS - 1;
    assert.equal(await rpc.call('eth_call', []), 'b');
    clock += 1;
    assert.equal(await rpc.call('eth_call', []), 'a');
  });

  it('counts no reading of a node that has not been compared', async () => {
    const [first, stranger] = [node('a', down, down, down, down, down), node('b')];
    const rpc = order([first, stranger], async (one) => {
      if (one === stranger) throw new Error('it is of another chain');
    });
    await assert.rejects(rpc.call('eth_call', []));
    assert.ok(!asked.some((line) => line.startsWith('b')));
  });
});
