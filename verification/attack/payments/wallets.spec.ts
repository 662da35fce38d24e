import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Address, concat, encodeAbiParameters, encodeFunctionData, type Hex, parseAbiParameters } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';
import { decode, encode } from '../../../spec/e2e/proofs.ts';
import { freshAddress } from '../../../spec/payments/x402/signing.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { TOKEN_ABI } from '../../../tools/local-world/contracts.ts';
import { attack } from '../catalogue.ts';
import { ALL_CHANNELS, buy, CHANNELS, type Seen } from './channels.ts';

const RESOURCE = { resourceId: 'market_report', input: { city: 'Berlin' } };
const FUNDS_UNITS = 1_000_000n;
/** Marks a signature of a wallet that is not deployed yet (ERC-6492). */
const ERC6492_MARK: Hex = `0x${'6492'.repeat(16)}`;
const ANY_SIGNATURE: Hex = `0x${'11'.repeat(64)}1b`;
/** `isValidSignature` of ERC-1271, which means valid. */
const YES = `1626ba7e${'0'.repeat(56)}`;
/** Runtime code of contract payers, by their answers. PUSH32 yes, …, MSTORE, RETURN 32 bytes. */
const WALLETS = {
  'yes in even blocks and no in odd ones': `0x7f${YES}600143166001030260005260206000f3`,
  'never, because it runs for ever': '0x5b600056',
  'with a megabyte of nothing': '0x620fffff6000f3',
  'with a megabyte of nothing, as an error': '0x620fffff6000fd',
  'with an invalid instruction': '0xfe',
  'by ending itself': '0x33ff',
  'with one byte': '0x60016000f3',
} as const;

describe('a payer that is a contract', () => {
  let testbed: Testbed;
  let relayer: Address;
  before(async () => {
    testbed = await openTestbed({ overrides: ALL_CHANNELS });
    relayer = privateKeyToAddress(testbed.chain.relayerKey);
  });
  after(() => testbed.close());

  const bring = async (from: string, signature: Hex, channel: (typeof CHANNELS)[number] = 'http'): Promise<Seen> => {
    const payload = decode(await testbed.proof(RESOURCE.resourceId, RESOURCE.input));
    const authorization = { ...payload.payload.authorization, from };
    return buy(testbed.gateway.url, channel, {
      ...RESOURCE,
      proof: encode({ ...payload, payload: { authorization, signature } }),
    });
  };
  /** The values that must not change: income, executions. */
  const nothingMoved = async (action: () => Promise<void>): Promise<void> => {
    const [income, executions] = [await testbed.income(), testbed.backend.requests.length];
    await action();
    assert.deepEqual([await testbed.income(), testbed.backend.requests.length], [income, executions]);
    const honest = await buy(testbed.gateway.url, 'http', {
      ...RESOURCE,
      proof: await testbed.proof(RESOURCE.resourceId, RESOURCE.input),
    });
    assert.equal(honest.outcome, 'delivered', 'others still buy');
  };
  const refused = ({ outcome, code, everything }: Seen): void => {
    const open = code === 'PAYMENT_SETTLEMENT_FAILED' || code === 'PAYMENT_PROVIDER_UNAVAILABLE';
    assert.ok(outcome === 'asked' || open, everything);
  };

  for (const [answer, code] of Object.entries(WALLETS))
    attack('X9', `that answers ${answer}: nothing is delivered without a payment`, async () => {
      for (const channel of CHANNELS) {
        const wallet = freshAddress();
        await testbed.chain.request('anvil_setCode', [wallet, code]);
        await testbed.chain.mint(wallet, FUNDS_UNITS);
        await nothingMoved(async () => {
          refused(await bring(wallet, ANY_SIGNATURE, channel));
        });
        const left = await testbed.chain.balanceOf(wallet);
        assert.equal(left, FUNDS_UNITS);
      }
    });

  attack(
    ['X8', 'I4'],
    'x402-foundation/x402 PR 2480: a factory of the payer is never called with the key of the gateway',
    async () => {
      const { chain } = testbed;
      const thief = freshAddress();
      await chain.mint(relayer, FUNDS_UNITS);
      const loot = encodeFunctionData({
        abi: TOKEN_ABI,
        functionName: 'transfer',
        args: [thief as Address, FUNDS_UNITS],
      });
      for (const channel of CHANNELS)
        for (const inner of [ANY_SIGNATURE, '0x'] as const) {
          const wrapped = encodeAbiParameters(parseAbiParameters('address, bytes, bytes'), [
            chain.token.address,
            loot,
            inner,
          ]);
          const from = freshAddress();
          await chain.mint(from, FUNDS_UNITS);
          await nothingMoved(async () => {
            const sent = await chain.request('eth_getTransactionCount', [relayer, 'latest']);
            const seen = await bring(from, concat([wrapped, ERC6492_MARK]), channel);
            refused(seen);
            assert.equal(await chain.request('eth_getTransactionCount', [relayer, 'latest']), sent, 'nothing was sent');
          });
        }
      assert.equal(await chain.balanceOf(thief), 0n);
      assert.equal(await chain.balanceOf(relayer), FUNDS_UNITS);
    },
  );

  attack('X8', 'a signature of the greatest header length is refused before any work on it', async () => {
    for (const bytes of [66, 1_000, 2_500])
      await nothingMoved(async () => refused(await bring(freshAddress(), `0x${'ab'.repeat(bytes)}`)));
  });
});

/**
 * Approves in odd blocks, where it is simulated, and refuses in the even one that includes the
 * transaction.
 */
const FICKLE = `0x7f${YES}600143160260005260206000f3`;
/** How long an answer may take, milliseconds. */
const SOON_MS = 3_000;

describe('a contract payer that changes its answer', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  attack(
    ['X9', 'X18'],
    'between simulation and block: nothing is delivered, and no slot is held until the deadline',
    async () => {
      const { chain, gateway } = testbed;
      const wallet = freshAddress();
      await chain.request('anvil_setCode', [wallet, FICKLE]);
      await chain.mint(wallet, FUNDS_UNITS);
      if (BigInt(String(await chain.request('eth_blockNumber', []))) % 2n === 0n) await chain.request('evm_mine', []);
      const payload = decode(await testbed.proof(RESOURCE.resourceId, RESOURCE.input));
      const authorization = { ...payload.payload.authorization, from: wallet };
      const proof = encode({ ...payload, payload: { authorization, signature: ANY_SIGNATURE } });
      const begun = performance.now();
      const answer = buy(gateway.url, 'http', { ...RESOURCE, proof });
      await Promise.race([answer, delay(SOON_MS, undefined, { ref: false })]);
      const tookMs = performance.now() - begun;
      // Once no block can include the authorization any more, the answer is 402.
      await chain.request('evm_increaseTime', [1_000]);
      await chain.request('evm_mine', []);
      const seen = await answer;
      assert.ok(seen.outcome === 'asked' || seen.code === 'PAYMENT_SETTLEMENT_FAILED', seen.everything);
      assert.deepEqual([await testbed.income(), testbed.backend.requests.length], [0n, 0]);
      assert.ok(tookMs < SOON_MS, 'the call still waits although its failed transaction is in a block');
    },
  );
});

describe('a chain that has lost a transaction of the relayer', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  attack('X15', 'the next buyer is still served: the nonces of the relayer have no gap', async () => {
    const purchase = async () =>
      buy(testbed.gateway.url, 'http', {
        ...RESOURCE,
        proof: await testbed.proof('market_report', RESOURCE.input),
      });
    const snapshot = await testbed.chain.request('evm_snapshot', []);
    assert.equal((await purchase()).outcome, 'delivered');
    await testbed.chain.request('evm_revert', [snapshot]);
    const begun = performance.now();
    const next = purchase();
    await Promise.race([next, delay(SOON_MS, undefined, { ref: false })]);
    const tookMs = performance.now() - begun;
    if (tookMs >= SOON_MS) {
      // Sends the missing transaction, so that the call can end.
      const relayer = privateKeyToAddress(testbed.chain.relayerKey);
      await testbed.chain.send(relayer, relayer, '0x');
    }
    assert.equal((await next).outcome, 'delivered');
    assert.ok(tookMs < SOON_MS, 'its transaction waited behind the lost one');
  });
});
