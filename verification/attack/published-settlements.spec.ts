import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { toEventSelector } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';
import { decode, encode } from '../../spec/e2e/proofs.ts';
import { chainActors } from '../../spec/payments/x402/chain/chain-actors.ts';
import { sign, termsFor } from '../../spec/payments/x402/signing.ts';
import { createBuyer } from '../../spec/support/buyer.ts';
import { type HostileFacilitator, startHostileFacilitator } from '../../spec/support/hostile-facilitator.ts';
import { eventually } from '../../spec/support/records.ts';
import { openTestbed, type Testbed } from '../../spec/support/testbed.ts';
import { attack } from './catalogue.ts';
import { submit } from './facilitator/stage.ts';
import { ALL_CHANNELS, buy, CHANNELS } from './payments/channels.ts';
import { granted, INPUT, openPublishedTestbed, type PublishedTestbed, RESOURCE } from './published-testbed.ts';

const PRICE_UNITS = 10_000n;
const NETWORK = 'eip155:31337';

describe('published attacks on tokens and keys, as published', () => {
  let testbed: PublishedTestbed['testbed'];
  let proofOf: PublishedTestbed['proofOf'];
  let bring: PublishedTestbed['bring'];
  let came: PublishedTestbed['came'];
  before(async () => {
    ({ testbed, proofOf, bring, came } = await openPublishedTestbed());
  });
  after(() => testbed.close());

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

describe('published attacks on facilitators, as published', () => {
  let liar: HostileFacilitator;
  let testbed: Testbed;
  before(async () => {
    liar = await startHostileFacilitator(NETWORK);
    testbed = await openTestbed({ facilitator: { mode: 'remote', url: liar.url }, overrides: ALL_CHANNELS });
  });
  after(async () => {
    await testbed.close();
    await liar.stop();
  });

  attack(
    ['I5', 'X4', 'X10'],
    'gosuda 42, covenant 270: the gateway compares to and value itself and does not rely on isValid',
    async () => {
      const terms = termsFor(testbed.chain.token);
      for (const changes of [
        { to: testbed.buyer.address },
        { value: '1' },
        { value: '0' },
        { to: testbed.chain.token.address },
      ]) {
        const payload = decode(await testbed.proof('market_report', INPUT));
        const authorization = { ...payload.payload.authorization, ...changes } as unknown as Parameters<typeof sign>[1];
        const signature = await sign(testbed.buyer.account, authorization, terms);
        const proof = encode({ ...payload, payload: { authorization, signature } });
        for (const channel of CHANNELS)
          assert.equal((await buy(testbed.gateway.url, channel, { ...RESOURCE, proof })).outcome, 'asked');
      }
      assert.deepEqual([liar.calls.some(({ path }) => path !== '/supported'), await testbed.income()], [false, 0n]);
    },
  );

  attack(
    ['I2', 'X18'],
    'arXiv 2605.30998, denial of settlement: a nonce that timed out neither buys twice nor loses its payment',
    async () => {
      const proof = await testbed.proof('market_report', INPUT);
      let settled: Promise<unknown> | undefined;
      liar.script({
        settle: async () => {
          settled ??= submit(testbed.chain, proof);
          await settled;
          return { kind: 'reset' };
        },
      });
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, at) =>
          buy(testbed.gateway.url, CHANNELS[at % CHANNELS.length] ?? 'http', { ...RESOURCE, proof }),
        ),
      );
      for (const { outcome, code } of answers)
        assert.ok(
          outcome === 'delivered' || code === 'PAYMENT_REPLAYED' || code === 'PAYMENT_SETTLEMENT_FAILED',
          code ?? '',
        );
      const last = await eventually(async () => {
        const seen = await buy(testbed.gateway.url, 'http', { ...RESOURCE, proof });
        return seen.outcome === 'delivered' || seen.state === 'delivered' ? seen : undefined;
      }, 'what was paid for');
      assert.notEqual(last.outcome, 'asked');
      assert.deepEqual([await testbed.income(), testbed.backend.requests.length], [PRICE_UNITS, 1]);
    },
  );
});
