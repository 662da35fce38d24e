import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { OversizedAnswer } from '../../../../src/payments/x402/chain/http-json.ts';
import { clientOver, OversizedRequest, type Rpc, RpcRefusal } from '../../../../src/payments/x402/chain/node.ts';
import { MULTICALL3 } from '../../../../src/payments/x402/evm/eip3009.ts';
import { together } from '../../../../src/payments/x402/local/local-rail.ts';
import { createSimulation, type Transfer, transferOf } from '../../../../src/payments/x402/local/transfer.ts';
import { authorize, PRICE_UNITS } from '../signing.ts';
import { ASSET, freshPayer, OFFER, PoolNode } from './lane-stage.ts';

describe('the simulation of many transfers', () => {
  let node: PoolNode;
  beforeEach(() => {
    node = new PoolNode();
  });

  const transfer = (units: bigint, payer = freshPayer()): Transfer => {
    node.balances.set(payer, units);
    const payload = { signature: `0x${'11'.repeat(64)}1b`, authorization: authorize(payer, OFFER) };
    return transferOf({ payId: '', signedBy: 'account', payload: { x402Version: 2, accepted: OFFER, payload } });
  };
  const simulation = (call: Rpc['call'] = (method, params) => node.call(method, params)) => {
    const client = clientOver((method, params) => (method === 'eth_getCode' ? node : { call }).call(method, params));
    return createSimulation(client, ASSET, ASSET).simulate;
  };
  const isJoint = (params: readonly unknown[]): boolean =>
    (params[0] as { readonly to?: string }).to?.toLowerCase() === MULTICALL3;

  it('explains each that fails, and a payer that signed more than it has fails behind itself only', async () => {
    const payer = freshPayer();
    const transfers = [transfer(PRICE_UNITS), transfer(0n), transfer(PRICE_UNITS, payer), transfer(PRICE_UNITS, payer)];
    const verdicts = await Promise.all(await simulation()(transfers));
    assert.deepEqual(verdicts, [
      { kind: 'valid' },
      { kind: 'refused', reason: 'insufficient_funds', nonceSpent: false },
      { kind: 'valid' },
      { kind: 'behind' },
    ]);
  });

  it('knows those that pass before the node has explained the others', async () => {
    const transfers = [transfer(PRICE_UNITS), transfer(0n)];
    const [passes] = await simulation(async (method, params) => {
      if (!isJoint(params)) await new Promise(() => undefined);
      return node.call(method, params);
    })(transfers);
    assert.deepEqual(await passes, { kind: 'valid' });
  });

  const cannot: readonly (readonly [what: string, error: Error])[] = [
    ['refuses', new RpcRefusal('eth_call', -32_000, 'gas required exceeds allowance', false)],
    ['allows less gas', new RpcRefusal('eth_call', -32_005, 'gas limit exceeded', false)],
    ['answers with too much', new OversizedAnswer(1)],
    ['takes no request of the size', new OversizedRequest('eth_call')],
  ];
  for (const [what, error] of cannot)
    it(`asks for each alone where the node does not simulate them together: it ${what}`, async () => {
      const verdicts = await simulation(async (method, params) => {
        if (isJoint(params)) throw error;
        return node.call(method, params);
      })([transfer(PRICE_UNITS), transfer(0n)]);
      const kinds = (await Promise.all(verdicts)).map(({ kind }) => kind);
      assert.deepEqual(kinds, ['valid', 'refused']);
    });

  const down: readonly (readonly [what: string, error: Error])[] = [
    ['is silent', new Error('no answer in time')],
    ['limits its callers by code', new RpcRefusal('eth_call', -32_005, 'limit exceeded', false)],
    ['limits its callers in words', new RpcRefusal('eth_call', -32_000, 'Too Many Requests', false)],
  ];
  for (const [what, error] of down)
    it(`asks a node once that ${what}: no transfer has a verdict`, async () => {
      let asked = 0;
      const verdicts = await simulation(async () => {
        asked += 1;
        throw error;
      })([transfer(PRICE_UNITS), transfer(PRICE_UNITS)]);
      const unavailable = { kind: 'unavailable', cause: error.message };
      assert.deepEqual(await Promise.all(verdicts), [unavailable, unavailable]);
      assert.equal(asked, 1);
    });
});

describe('work that waits', () => {
  /** Rounds that end when the test says so. */
  const stage = () => {
    const rounds: { readonly items: readonly number[]; readonly end: PromiseWithResolvers<readonly string[]> }[] = [];
    const ask = together<number, string>(
      (items) => {
        const end = Promise.withResolvers<readonly string[]>();
        rounds.push({ items, end });
        return end.promise;
      },
      { atOnce: 2, most: 3 },
    );
    const end = (at: number): void => rounds[at]?.end.resolve(rounds[at].items.map(String));
    return { ask, rounds, end, taken: () => rounds.map(({ items }) => items) };
  };

  it('is done alone while few rounds run, and then all together up to a bound', async () => {
    const { ask, end, taken } = stage();
    const answers = [1, 2, 3, 4, 5, 6].map(ask);
    assert.deepEqual(taken(), [[1], [2]]);
    end(0);
    assert.equal(await answers[0], '1');
    assert.deepEqual(taken(), [[1], [2], [3, 4, 5]]);
    end(2);
    assert.deepEqual(await Promise.all(answers.slice(2, 5)), ['3', '4', '5']);
    assert.deepEqual(taken(), [[1], [2], [3, 4, 5], [6]]);
  });

  it('has the error of its round, and the next round begins all the same', async () => {
    const { ask, rounds, end } = stage();
    const answers = [1, 2, 3].map(ask);
    rounds[0]?.end.reject(new Error('broken'));
    await assert.rejects(answers[0] as Promise<string>, /broken/);
    end(2);
    assert.equal(await answers[2], '3');
  });
});
