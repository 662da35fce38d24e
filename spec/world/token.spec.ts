import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import {
  type Address,
  decodeFunctionResult,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  type Hex,
  type Log,
  parseEventLogs,
} from 'viem';
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from 'viem/accounts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { CONTRACTS, MULTICALL3_ABI, MULTICALL3_ADDRESS, TOKEN_ABI } from '../../tools/local-world/contracts.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import {
  type Authorization,
  authorization,
  cancelCall,
  chainTime,
  highS,
  signTransfer,
  transferBytesCall,
  transferCall,
} from './authorization.ts';

describe('the token of the local chain', () => {
  let chain: Chain;
  let payer: Buyer;
  let payee: Address;
  let relayer: Address;

  before(async () => {
    chain = await startChain();
    relayer = privateKeyToAddress(chain.relayerKey);
  });
  after(() => chain.stop());
  beforeEach(async () => {
    payer = await createBuyer(chain, 1_500n);
    payee = privateKeyToAddress(generatePrivateKey());
  });

  const submit = (call: Hex) => chain.send(relayer, chain.token.address, call);
  const refuses = (call: Hex, reason: RegExp) =>
    assert.rejects(
      chain.request('eth_call', [{ from: relayer, to: chain.token.address, data: call }, 'latest']),
      reason,
    );
  const logsOf = async (hash: Hex) => {
    const { logs } = (await chain.request('eth_getTransactionReceipt', [hash])) as { readonly logs: Log[] };
    return parseEventLogs({ abi: TOKEN_ABI, logs });
  };
  const balances = async () => [await payer.balance(), await chain.balanceOf(payee)];

  for (const [form, encode] of [
    ['v, r, s', transferCall],
    ['bytes', transferBytesCall],
  ] as const) {
    it(`pays by a signed authorization (${form}), AuthorizationUsed before Transfer`, async () => {
      const message = await authorization(chain, payer.address, payee);
      const logs = await logsOf(await submit(encode(message, await signTransfer(chain, payer.account, message))));
      assert.deepEqual(
        logs.map(({ eventName, args }) => [eventName, args]),
        [
          ['AuthorizationUsed', { authorizer: payer.address, nonce: message.nonce }],
          ['Transfer', { from: payer.address, to: payee, value: 1_000n }],
        ],
      );
      assert.deepEqual(await balances(), [500n, 1_000n]);
    });
  }

  it('refuses the same authorization a second time', async () => {
    const message = await authorization(chain, payer.address, payee, { value: 1n });
    const call = transferCall(message, await signTransfer(chain, payer.account, message));
    await submit(call);
    await refuses(call, /authorization is used or canceled/);
  });

  it('refuses a cancelled authorization, and a used one cannot be cancelled', async () => {
    const message = await authorization(chain, payer.address, payee, { value: 1n });
    const logs = await logsOf(await submit(await cancelCall(chain, payer.account, message.nonce)));
    assert.deepEqual(
      logs.map(({ eventName }) => eventName),
      ['AuthorizationCanceled'],
    );
    await refuses(transferCall(message, await signTransfer(chain, payer.account, message)), /used or canceled/);
    await refuses(await cancelCall(chain, payer.account, message.nonce), /used or canceled/);
  });

  it('refuses a cancellation with another signature', async () => {
    const stranger = await createBuyer(chain, 0n);
    const message = await authorization(chain, payer.address, payee);
    const call = await cancelCall(chain, { ...stranger.account, address: payer.address }, message.nonce);
    await refuses(call, /invalid signature/);
  });

  it('takes the time bounds as exclusive on both sides', async () => {
    // eth_call with a block number override runs at exactly that time; a transaction would not.
    const now = await chainTime(chain);
    const outcomes: [bigint, bigint, RegExp | undefined][] = [
      [now - 1n, now + 1n, undefined],
      [now, now + 1n, /not yet valid/],
      [now - 1n, now, /authorization is expired/],
    ];
    for (const [validAfter, validBefore, reason] of outcomes) {
      const message = await authorization(chain, payer.address, payee, { validAfter, validBefore });
      const data = transferCall(message, await signTransfer(chain, payer.account, message));
      const call = chain.request('eth_call', [
        { from: relayer, to: chain.token.address, data },
        'latest',
        {},
        { time: `0x${now.toString(16)}` },
      ]);
      if (reason === undefined) assert.equal(await call, '0x');
      else await assert.rejects(call, reason);
    }
  });

  const signatures = [
    ['a high s', async (m: Authorization) => transferCall(m, highS(await sign(m))), /'s' value/],
    ['v 0 or 1', async (m: Authorization) => transferCall(m, await sign(m), (await sign(m)).yParity), /'v' value/],
    [
      'another value',
      async (m: Authorization) => transferCall({ ...m, value: 2n }, await sign(m)),
      /invalid signature/,
    ],
    [
      'another payee',
      async (m: Authorization) => transferCall({ ...m, to: relayer }, await sign(m)),
      /invalid signature/,
    ],
    [
      'another payer',
      async (m: Authorization) => transferCall({ ...m, from: relayer }, await sign(m)),
      /invalid signature/,
    ],
  ] as const;
  const sign = (message: Authorization) => signTransfer(chain, payer.account, message);
  for (const [what, forge, reason] of signatures) {
    it(`refuses a signature with ${what}`, async () => {
      await refuses(await forge(await authorization(chain, payer.address, payee)), reason);
    });
  }

  it('lets a contract pay with the signature of its owner only', async () => {
    const owner = privateKeyToAccount(generatePrivateKey());
    const { abi, bytecode } = CONTRACTS.contracts.ContractWallet;
    const nonce = BigInt((await chain.request('eth_getTransactionCount', [relayer, 'latest'])) as Hex);
    await chain.send(relayer, undefined, encodeDeployData({ abi, bytecode, args: [owner.address] }));
    const wallet = getContractAddress({ from: relayer, nonce });
    await chain.mint(wallet, 1_000n);
    const message = await authorization(chain, wallet, payee);
    await refuses(transferBytesCall(message, await sign(message)), /invalid signature/);
    await submit(transferBytesCall(message, await signTransfer(chain, owner, message)));
    assert.equal(await chain.balanceOf(payee), 1_000n);
  });

  it('Multicall3 runs its calls in sequence, so a payer cannot spend the same balance twice', async () => {
    const calls = [];
    for (let copy = 0; copy < 2; copy += 1) {
      const message = await authorization(chain, payer.address, payee);
      calls.push({
        target: chain.token.address,
        allowFailure: true,
        callData: transferCall(message, await sign(message)),
      });
    }
    const data = encodeFunctionData({ abi: MULTICALL3_ABI, functionName: 'aggregate3', args: [calls] });
    const answer = (await chain.request('eth_call', [{ to: MULTICALL3_ADDRESS, data }, 'latest'])) as Hex;
    const results = decodeFunctionResult({ abi: MULTICALL3_ABI, functionName: 'aggregate3', data: answer });
    assert.deepEqual(
      results.map(({ success }) => success),
      [true, false],
    );
    await chain.send(relayer, MULTICALL3_ADDRESS, data);
    assert.deepEqual(await balances(), [500n, 1_000n]);
  });

  it('states the EIP-712 domain that the configuration is made from', async () => {
    const read = async (functionName: 'name' | 'version' | 'decimals') => {
      const data = encodeFunctionData({ abi: TOKEN_ABI, functionName });
      const answer = (await chain.request('eth_call', [{ to: chain.token.address, data }, 'latest'])) as Hex;
      return decodeFunctionResult({ abi: TOKEN_ABI, functionName, data: answer });
    };
    const { name, version, decimals } = chain.token;
    assert.deepEqual([await read('name'), await read('version'), await read('decimals')], [name, version, decimals]);
  });
});
