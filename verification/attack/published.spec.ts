import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { toEventSelector } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';
import { callTool } from '../../spec/adapters/mcp/post.ts';
import { decode, encode } from '../../spec/e2e/proofs.ts';
import { termsFor } from '../../spec/payments/x402/signing.ts';
import { chainActors } from '../../spec/payments/x402/stage.ts';
import { createBuyer } from '../../spec/support/buyer.ts';
import { receiptWhen } from '../../spec/support/records.ts';
import { openTestbed, type Testbed } from '../../spec/support/testbed.ts';
import { attack } from './catalogue.ts';
import { ALL_CHANNELS, buy, CHANNELS, causedBy, type Seen } from './payments/channels.ts';

/** What the published attacks buy. */
const INPUT = { city: 'Berlin' };
const RESOURCE = { resourceId: 'market_report', input: INPUT };
const PRICE_UNITS = 10_000n;

describe('published attacks on payments, tokens and keys, as published', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: ALL_CHANNELS });
  });
  after(() => testbed.close());
  /** A proof as the chain shows it: without the token that the gateway issued to its buyer. */
  const proofOf = async (): Promise<string> => {
    const proof = decode(await testbed.proof('market_report', INPUT));
    delete proof.extensions;
    return encode(proof);
  };
  const bring = (proof: string, channel = 0): Promise<Seen> =>
    buy(testbed.gateway.url, CHANNELS[channel % CHANNELS.length] ?? 'http', { ...RESOURCE, proof });
  const came = (action: () => Promise<void>) => causedBy(testbed, action);

  attack(
    ['I1', 'X15'],
    'arXiv 2605.11781 I-A, revert-grant: a reorganised settlement buys one answer at most',
    async () => {
      const proof = await proofOf();
      const snapshot = await testbed.chain.request('evm_snapshot', []);
      const first = await bring(proof);
      await receiptWhen(testbed.gateway, first.requestId, true);
      await testbed.chain.request('evm_revert', [snapshot]);
      await fillNonce(testbed);
      const gone = await came(async () => {
        const again = await Promise.all(Array.from({ length: 12 }, (_, at) => bring(proof, at)));
        assert.equal(granted(again), 0);
        for (const { code } of again) assert.equal(code, 'PAYMENT_REPLAYED');
      });
      assert.deepEqual(gone, [0n, 0]);
    },
  );

  attack(
    'I8',
    '402Bridge: no allowance for the gateway exists, its key holds gas only and is not disclosed',
    async () => {
      const relayer = privateKeyToAddress(testbed.chain.relayerKey);
      assert.equal((await bring(await proofOf())).outcome, 'delivered');
      const topics = [toEventSelector('Approval(address,address,uint256)')];
      const approvals = await testbed.chain.request('eth_getLogs', [{ fromBlock: '0x0', toBlock: 'latest', topics }]);
      assert.deepEqual([approvals, await testbed.chain.balanceOf(relayer)], [[], 0n]);
      const pages = ['/api/resources', '/.well-known/agent-commerce', '/api/events', '/api/receipts'];
      const sinks = await Promise.all(pages.map(async (path) => (await testbed.gateway.operator(path)).text()));
      const key = testbed.chain.relayerKey.slice(2);
      assert.ok(![...sinks, ...testbed.gateway.logLines].some((sink) => sink.includes(key)));
    },
  );

  attack(['I3', 'X14'], 'PYUSD: with a token that does not revert on reuse, a used nonce is no payment', async () => {
    const { chain } = testbed;
    const proof = await proofOf();
    const actors = chainActors(chain, termsFor(chain.token));
    await actors.spendOnSelf(testbed.buyer.account, {
      payId: '',
      payload: decode(proof),
      signedBy: 'account',
    } as never);
    const code = await chain.request('eth_getCode', [chain.token.address, 'latest']);
    // From now on every call of the token succeeds, answers "used" and moves nothing.
    await chain.request('anvil_setCode', [chain.token.address, '0x600160005260206000f3']);
    const relayer = privateKeyToAddress(chain.relayerKey);
    const sent = await chain.request('eth_getTransactionCount', [relayer, 'latest']);
    const seen = await bring(proof);
    assert.notEqual(
      await chain.request('eth_getTransactionCount', [relayer, 'latest']),
      sent,
      'it was sent and succeeded',
    );
    await chain.request('anvil_setCode', [chain.token.address, code]);
    assert.equal(seen.outcome, 'asked', seen.everything);
    assert.equal((await bring(proof)).outcome, 'asked', 'and it stays worthless');
  });

  attack(
    ['I2', 'X16'],
    'arXiv 2605.30998, overdraft: ten authorizations with the balance for one buy one',
    async () => {
      const poor = await createBuyer(testbed.chain, PRICE_UNITS);
      const gone = await came(async () => {
        const proofs = await Promise.all(
          Array.from({ length: 10 }, async () =>
            poor.pay((await testbed.quote('market_report', INPUT)).body.payment.envelope),
          ),
        );
        const calls = proofs.map((proof, at) => bring(proof, at));
        await Promise.any(calls.map(async (call) => assert.equal((await call).outcome, 'delivered')));
        // Calls whose transaction failed wait until no block can include it any more.
        await testbed.chain.request('evm_increaseTime', [1_000]);
        await testbed.chain.request('evm_mine', []);
        const answers = await Promise.all(calls);
        assert.equal(granted(answers), 1);
        // After a transfer of a payer failed in a block, its next settlements wait: later calls get
        // PAYMENT_PROVIDER_UNAVAILABLE.
        const open = ['PAYMENT_SETTLEMENT_FAILED', 'PAYMENT_PROVIDER_UNAVAILABLE'];
        for (const { outcome, code } of answers)
          assert.ok(outcome !== 'failed' || open.includes(code ?? ''), code ?? '');
      });
      assert.deepEqual(gone, [PRICE_UNITS, 1]);
    },
  );
});

/**
 * After a reorganisation a transaction is mined again in another block; here, one without effect
 * replaces it.
 */
async function fillNonce({ chain }: Testbed): Promise<void> {
  const relayer = privateKeyToAddress(chain.relayerKey);
  await chain.send(relayer, relayer, '0x');
}

/** Answers that delivered. */
function granted(answers: readonly Seen[]): number {
  return answers.filter(({ outcome }) => outcome === 'delivered').length;
}

describe('published attacks on channels and libraries, as published', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: ALL_CHANNELS });
  });
  after(() => testbed.close());

  attack(
    ['I9', 'A5'],
    'CVE-2026-25536: concurrent clients with the same JSON-RPC id each get their own answer',
    async () => {
      const cities = Array.from({ length: 100 }, (_, n) => `City ${n}`);
      const answers = await Promise.all(
        cities.map((city) => callTool(testbed.gateway.url, 'free_market_report', { city })),
      );
      assert.deepEqual(
        answers.map(({ structuredContent }) => structuredContent?.['city']),
        cities,
      );
    },
  );
});
