import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { privateKeyToAddress } from 'viem/accounts';
import { decode, encode } from '../../spec/e2e/proofs.ts';
import { receiptWhen } from '../../spec/support/records.ts';
import type { Testbed } from '../../spec/support/testbed.ts';
import { attack } from './catalogue.ts';
import { submit } from './facilitator/stage.ts';
import { buy, CHANNELS } from './payments/channels.ts';
import { granted, INPUT, openPublishedTestbed, type PublishedTestbed } from './published-testbed.ts';

const PRICE_UNITS = 10_000n;
/** How many grants one payment bought on the endpoint of the paper. */
const PUBLISHED_GRANTS = 248;

describe('published attacks on payments, as published', () => {
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
    ['I1', 'X13'],
    'arXiv 2605.11781 I-B, preemption: a settlement by a stranger costs the buyer nothing',
    async () => {
      const gone = await came(async () => {
        const proof = await proofOf();
        await submit(testbed.chain, proof);
        assert.equal((await bring(proof)).outcome, 'delivered');
      });
      assert.deepEqual(gone, [PRICE_UNITS, 1]);
    },
  );

  attack(
    ['I1', 'X2', 'X16'],
    `arXiv 2605.11781 II, replay: ${PUBLISHED_GRANTS} requests with one payment get one grant`,
    async () => {
      const gone = await came(async () => {
        const proof = await proofOf();
        const first = await bring(proof);
        await receiptWhen(testbed.gateway, first.requestId, true);
        const others = await Promise.all(Array.from({ length: PUBLISHED_GRANTS - 1 }, (_, at) => bring(proof, at)));
        assert.equal(granted([first, ...others]), 1);
      });
      assert.deepEqual(gone, [PRICE_UNITS, 1]);
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
    ['I2', 'X5'],
    'arXiv 2605.30998, cross-resource substitution: a proof buys only the resource that it was signed for',
    async () => {
      const proof = await testbed.proof('noisy');
      const seen = await buy(testbed.gateway.url, 'http', { resourceId: 'greeting', proof });
      assert.deepEqual([seen.outcome, seen.reason], ['asked', 'invalid_payment_requirements']);
    },
  );

  attack(
    ['I2', 'X3'],
    'arXiv 2605.30998, duplicate-settlement race: one hundred calls at once, one settlement',
    async () => {
      const gone = await came(async () => {
        const proof = await proofOf();
        const answers = await Promise.all(Array.from({ length: 100 }, (_, at) => bring(proof, at)));
        assert.ok(granted(answers) >= 1);
        for (const { outcome, code } of answers)
          assert.ok(outcome === 'delivered' || code === 'PAYMENT_REPLAYED' || code === 'GATEWAY_BUSY', code ?? '');
        assert.equal(
          new Set(answers.filter(({ outcome }) => outcome === 'delivered').map(({ bytes }) => bytes.toString())).size,
          1,
        );
      });
      assert.deepEqual(gone, [PRICE_UNITS, 1]);
    },
  );

  attack(
    ['I6', 'X5'],
    'x402-dotnet 18, a2a-x402 PR 107, PR 2842: a payment is bound to its resource, also when the proof does not name it',
    async () => {
      const gone = await came(async () => {
        const unnamed = decode(await testbed.proof('noisy'));
        delete unnamed.resource;
        const proof = encode(unnamed);
        assert.equal((await buy(testbed.gateway.url, 'a2a', { resourceId: 'noisy', proof })).outcome, 'delivered');
        for (const channel of CHANNELS)
          assert.equal(
            (await buy(testbed.gateway.url, channel, { resourceId: 'greeting', proof })).code,
            'PAYMENT_REPLAYED',
          );
      });
      assert.deepEqual(gone, [1_000n, 1]);
    },
  );

  attack(['I7', 'X2'], 'GetBindu/Bindu PR 520: one header buys one call, not all calls until it expires', async () => {
    const gone = await came(async () => {
      const proof = await proofOf();
      assert.equal((await bring(proof)).outcome, 'delivered');
      for (const city of ['Berlin', 'Lisboa', 'Porto'])
        for (const channel of CHANNELS) {
          const seen = await buy(testbed.gateway.url, channel, {
            resourceId: 'market_report',
            input: { city },
            proof,
          });
          assert.equal(seen.code, 'PAYMENT_REPLAYED');
        }
    });
    assert.deepEqual(gone, [PRICE_UNITS, 1]);
  });
});

/**
 * After a reorganisation a transaction is mined again in another block; here, one without effect
 * replaces it.
 */
async function fillNonce({ chain }: Testbed): Promise<void> {
  const relayer = privateKeyToAddress(chain.relayerKey);
  await chain.send(relayer, relayer, '0x');
}
