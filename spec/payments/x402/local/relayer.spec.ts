import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { clientOver, readHead } from '../../../../src/payments/x402/chain/client.ts';
import { createRpc, type Rpc } from '../../../../src/payments/x402/chain/rpc.ts';
import { createRelayer, NumberTaken, type Relayer } from '../../../../src/payments/x402/local/relayer.ts';
import { watchFees } from '../../../../src/payments/x402/local/relayer-fees.ts';
import { type Chain, startChain } from '../../../../tools/local-world/chain.ts';

const MINED_WITHIN_MS = 60_000;

describe('the relayer on a real chain', () => {
  let chain: Chain;
  let rpc: Rpc;
  let relayer: Relayer;
  before(async () => {
    chain = await startChain();
    rpc = createRpc(chain.rpcUrl);
    relayer = await createRelayer(rpc, chain.chainId, chain.relayerKey, { current: currentFees });
  });
  after(async () => {
    await rpc.close();
    await chain.stop();
  });

  /** Of the newest block, whenever they are asked for. */
  const currentFees = () =>
    watchFees({ client: clientOver(rpc.call), head: () => readHead(clientOver(rpc.call)) }).current();
  const send = async (): Promise<string> => {
    const sending = await relayer.send({ to: relayer.address, data: '0x', gas: 30_000n }, async () => undefined);
    if (sending.kind !== 'sent') throw new Error(`not sent: ${String(sending.cause)}`);
    return sending.hash;
  };
  const mined = async (hash: string): Promise<boolean> =>
    (await rpc.call('eth_getTransactionReceipt', [hash])) !== null;

  /** The node answers before its block is there. */
  const minedSoon = async (hash: string): Promise<void> => {
    const deadline = performance.now() + MINED_WITHIN_MS;
    while (!(await mined(hash))) {
      assert.ok(performance.now() < deadline, `${hash} is not mined`);
      await delay(10);
    }
  };

  it('sends again what a reorganisation took out of the chain, before the next one', async () => {
    const snapshot = await chain.request('evm_snapshot', []);
    const hashes = [await send(), await send()];
    for (const hash of hashes) await minedSoon(hash);
    await chain.request('evm_revert', [snapshot]);
    for (const hash of hashes) assert.equal(await mined(hash), false);
    for (const hash of [await send(), ...hashes]) await minedSoon(hash);
  });

  it('sends again what a node lost that was still to be mined', async () => {
    await chain.request('evm_setAutomine', [false]);
    const lost = await send();
    await chain.request('anvil_dropTransaction', [lost]);
    const next = await send();
    await chain.request('evm_mine', []);
    await chain.request('evm_setAutomine', [true]);
    assert.deepEqual([await mined(lost), await mined(next)], [true, true]);
  });

  it('offers no more for a number that has gone to another transaction', async () => {
    const [first] = [await relayer.send({ to: relayer.address, data: '0x', gas: 30_000n }, async () => undefined)];
    assert.ok(first.kind === 'sent');
    const call = { to: relayer.address, data: '0x01', gas: 30_000n };
    const another = { ...first, raw: '0x' };
    const replaced = await relayer.replace(another, call, async () => assert.fail('nothing may be signed'));
    assert.ok(replaced.kind === 'unsent' && replaced.cause instanceof NumberTaken, String(replaced.kind));
  });

  it('uses the number of one anew that the node does not take any more: the fee has risen', async () => {
    await chain.request('evm_setAutomine', [false]);
    const lost = await send();
    await chain.request('anvil_dropTransaction', [lost]);
    await chain.request('anvil_setNextBlockBaseFeePerGas', ['0x174876e800']);
    await chain.request('evm_mine', []);
    const next = await send();
    await chain.request('evm_mine', []);
    await chain.request('evm_setAutomine', [true]);
    assert.deepEqual([await mined(lost), await mined(next)], [false, true]);
  });
});
