import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { toEventSelector } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';
import { decode, encode } from '../../spec/e2e/proofs.ts';
import { chainActors } from '../../spec/payments/x402/chain/chain-actors.ts';
import { termsFor } from '../../spec/payments/x402/signing.ts';
import { createBuyer } from '../../spec/support/buyer.ts';
import { type HostileFacilitator, startHostileFacilitator } from '../../spec/support/hostile-facilitator.ts';
import { eventually, receiptWhen } from '../../spec/support/records.ts';
import { openTestbed, type Testbed } from '../../spec/support/testbed.ts';
import { attack } from './catalogue.ts';
import { submit } from './facilitator/stage.ts';
import { ALL_CHANNELS, buy, CHANNELS, type Seen } from './payments/channels.ts';

/** What the published attacks buy. */
const INPUT = { city: 'Berlin' };
const RESOURCE = { resourceId: 'market_report', input: INPUT };
const PRICE_UNITS = 10_000n;
const NETWORK = 'eip155:31337';

describe('published attacks on payments, tokens and keys, as published', () => {
  let testbed: PublishedTestbed['testbed'];
  let proofOf: PublishedTestbed['proofOf'];
  let bring: PublishedTestbed['bring'];
  let came: PublishedTestbed['came'];
  before(async () => {
    ({ testbed, proofOf, bring, came } = await openPublishedTestbed());
  });
  after(() => testbed.close());

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
    ['I1', 'H3', 'H7'],
    'arXiv 2605.11781 III, cache leak and header confusion: no cache may keep the answer, no second header is read',
    async () => {
      const proof = await proofOf();
      const asked = await testbed.gateway.invoke('market_report', INPUT);
      assert.equal(asked.headers.get('cache-control'), 'no-store');
      const twice = await testbed.gateway.invoke('market_report', INPUT, {
        'payment-signature': `${proof}, ${await proofOf()}`,
      });
      assert.equal(twice.status, 402);
      for (const name of ['x-payment', 'x-payment-signature', 'payment', 'authorization'])
        assert.equal((await testbed.gateway.invoke('market_report', INPUT, { [name]: proof })).status, 402, name);
      const bought = await testbed.gateway.invoke('market_report', INPUT, { 'payment-signature': proof });
      assert.deepEqual([bought.status, bought.headers.get('cache-control')], [200, 'private, no-store']);
      await bought.arrayBuffer();
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

/**
 * After a reorganisation a transaction is mined again in another block; here, one without effect
 * replaces it.
 */
async function fillNonce({ chain }: Testbed): Promise<void> {
  const relayer = privateKeyToAddress(chain.relayerKey);
  await chain.send(relayer, relayer, '0x');
}

/** A gateway that sells over every channel, with a buyer and a chain. */
interface PublishedTestbed {
  readonly testbed: Testbed;
  /** A proof as the chain shows it: without the token that the gateway issued to its buyer. */
  proofOf(): Promise<string>;
  /** Brings a proof over one of the channels, by its number. */
  bring(proof: string, channel?: number, headers?: Readonly<Record<string, string>>): Promise<Seen>;
  /** What an action caused: units paid to the merchant, requests sent to the backend. */
  came(action: () => Promise<void>): Promise<readonly [units: bigint, executions: number]>;
}

async function openPublishedTestbed(): Promise<PublishedTestbed> {
  const testbed = await openTestbed({ overrides: ALL_CHANNELS });
  return {
    testbed,
    async proofOf() {
      const proof = decode(await testbed.proof('market_report', INPUT));
      delete proof.extensions;
      return encode(proof);
    },
    bring: (proof, channel = 0, headers = {}) =>
      buy(testbed.gateway.url, CHANNELS[channel % CHANNELS.length] ?? 'http', { ...RESOURCE, proof, headers }),
    async came(action) {
      const [income, executions] = [await testbed.income(), testbed.backend.requests.length];
      await action();
      return [(await testbed.income()) - income, testbed.backend.requests.length - executions];
    },
  };
}

/** Answers that delivered. */
function granted(answers: readonly Seen[]): number {
  return answers.filter(({ outcome }) => outcome === 'delivered').length;
}
