import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { type Facilitator, startFacilitator } from '../support/facilitator.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { eventually } from '../support/records.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { type Silence, type SilentNode, startSilentNode } from '../support/silent-node.ts';
import { scrape } from '../telemetry/scrape.ts';

/**
 * Buyers of each kind of node: `BUYERS=300 node --test spec/e2e/silent-node.spec.ts` for the whole
 * measurement.
 */
const BUYERS = Number(process.env['BUYERS'] ?? 8);
/** Made side by side: a development chain answers slowly to more. */
const BUYERS_AT_ONCE = 20;
/** What `market_report` costs, and how much a buyer owns. */
const PRICE_UNITS = 10_000n;
const FUNDS = 4n * PRICE_UNITS;
/**
 * How long a proof is valid, seconds, and how long the silence outlives the last one of those
 * signed before it.
 */
const VALID_FOR_S = 15;
const AFTERWARDS_MS = 4_000;
const INPUT = { city: 'Berlin' };
/** Once the node answers again every buyer must have an end within this. */
const HEALED_WITHIN_MS = 60_000;

interface Outcome {
  readonly delivered: boolean;
  readonly signed: number;
  readonly statuses: readonly number[];
}

describe('a node that withholds data', { concurrency: true }, () => {
  for (const silence of ['stuck', 'logless', 'dead'] as const satisfies readonly Silence[])
    describe(`a node that is ${silence}, with a facilitator that settles`, () => {
      let chain: Chain;
      let backend: SampleBackend;
      let facilitator: Facilitator;
      let node: SilentNode;
      let gateway: TestGateway;
      let closed = false;
      before(async () => {
        [chain, backend] = await Promise.all([startChain(), startSampleBackend()]);
        [facilitator, node] = await Promise.all([startFacilitator(chain), startSilentNode(chain.rpcUrl)]);
        gateway = await openGateway({
          chain: { ...chain, rpcUrl: node.url },
          backendUrl: backend.url,
          facilitator: { mode: 'remote', url: facilitator.url },
          overrides: { payments: { x402: { maxTimeoutSeconds: VALID_FOR_S } } },
        });
      });
      after(async () => {
        closed = true;
        await gateway.close();
        await Promise.all([node.stop(), facilitator.stop(), backend.stop(), chain.stop()]);
      });

      /** The challenge, asked for again while the gateway has no slot. */
      const quote = async (): Promise<unknown> => {
        for (;;) {
          const answer = await gateway.invoke('market_report', INPUT);
          if (answer.status === 402) return envelope(await answer.json());
          await answer.arrayBuffer();
          await delay(1_000);
        }
      };
      /**
       * Follows every answer: the same proof again after the seconds that it names, and a new proof
       * after 402 alone.
       */
      const buyAsAnswered = async (buyer: Buyer, over: () => boolean): Promise<Outcome> => {
        const statuses: number[] = [];
        for (let signed = 1; ; signed += 1) {
          const proof = await buyer.pay(await quote());
          for (;;) {
            const answer = await gateway
              .invoke('market_report', INPUT, { 'payment-signature': proof })
              .catch(() => undefined);
            const text = await answer?.text();
            statuses.push(answer?.status ?? 0);
            if (answer?.status === 200) return { delivered: text?.includes('12.50') === true, signed, statuses };
            if (over()) return { delivered: false, signed, statuses };
            if (answer?.status === 402) break;
            await delay(Number(answer?.headers.get('retry-after') ?? 1) * 1_000);
          }
        }
      };

      it(`${BUYERS} buyers that follow the answers: at most one charge each, and delivery once the node answers again`, async (t) => {
        const buyers: Buyer[] = [];
        while (buyers.length < BUYERS) {
          const together = Math.min(BUYERS_AT_ONCE, BUYERS - buyers.length);
          buyers.push(...(await Promise.all(Array.from({ length: together }, () => createBuyer(chain, FUNDS)))));
        }
        let healedAt = 0;
        const over = (): boolean => closed || (healedAt > 0 && performance.now() - healedAt > HEALED_WITHIN_MS);
        await node.become(silence);
        const outcomes = Promise.all(buyers.map((buyer) => buyAsAnswered(buyer, over)));
        outcomes.catch(() => undefined);
        await delay(VALID_FOR_S * 1_000 + AFTERWARDS_MS);
        const charged = await Promise.all(
          buyers.map(async (buyer) => Number((FUNDS - (await buyer.balance())) / PRICE_UNITS)),
        );
        const most = Math.max(...charged);
        await node.become('honest');
        // A block after the ends of all windows: the chain makes one only for a transaction.
        await chain.request('evm_mine', []);
        healedAt = performance.now();
        const all = await outcomes;
        const after = await Promise.all(
          buyers.map(async (buyer) => Number((FUNDS - (await buyer.balance())) / PRICE_UNITS)),
        );
        const statuses = Object.groupBy(
          all.flatMap(({ statuses }) => statuses),
          String,
        );
        const counted = Object.fromEntries(
          Object.entries(statuses).map(([status, list = []]) => [status, list.length]),
        );
        const undelivered = all.filter(({ delivered }) => !delivered).length;
        t.diagnostic(
          `${JSON.stringify(counted)}, charged while silent ${charged.filter((times) => times > 0).length} of ${BUYERS}, ` +
            `at most ${most} times; in the end at most ${Math.max(...after)} times, ${undelivered} undelivered`,
        );
        assert.ok(most <= 1 && Math.max(...after) <= 1);
        assert.ok(all.every(({ delivered }, n) => delivered === (after[n] === 1)));
        // A buyer that found no slot, and was not charged, may still be waiting.
        assert.ok(undelivered < BUYERS / 2);
      });

      if (silence === 'logless')
        it('nothing new is taken meanwhile, and the cause is for the log and the metrics alone', async () => {
          const [first, late] = [await createBuyer(chain, FUNDS), await createBuyer(chain, FUNDS)];
          const proof = await first.pay(await quote());
          await node.become(silence);
          const bring = (brought: string) => gateway.invoke('market_report', INPUT, { 'payment-signature': brought });
          assert.equal((await bring(proof)).status, 502);
          await eventually(async () => {
            const ready = await fetch(`${gateway.url}/ready`);
            const { paymentProviders } = (await ready.json()) as { readonly paymentProviders: readonly unknown[] };
            if (ready.status === 200) return undefined;
            const failing = { name: 'x402', status: 'fail', detail: 'payment-provider-unreachable' };
            assert.deepEqual(paymentProviders, [failing]);
            return true;
          }, 'a provider that fails');
          assert.equal((await scrape(gateway.managementUrl)).get('acg_chain_fault{cause="missing"}'), 1);
          assert.ok(
            gateway.logLines.some((line) => line.includes('cannot be believed') && line.includes('without its logs')),
          );
          const answer = await bring(await late.pay(await quote()));
          const body = (await answer.json()) as { readonly code: string };
          assert.deepEqual([answer.status, body.code], [503, 'PAYMENT_PROVIDER_UNAVAILABLE']);
          assert.equal(answer.headers.get('payment-response'), null);
          assert.equal(await late.balance(), FUNDS);
          await node.become('honest');
          await eventually(async () => ((await bring(proof)).status === 200 ? true : undefined), 'the goods');
          assert.equal(FUNDS - (await first.balance()), PRICE_UNITS);
        });
    });
});

function envelope(body: unknown): unknown {
  return (body as { readonly payment: { readonly envelope: unknown } }).payment.envelope;
}
