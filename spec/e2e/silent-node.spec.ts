import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { type Chain, startChain } from '../support/chain.ts';
import { type Facilitator, startFacilitator } from '../support/facilitator.ts';
import { type Merchant, startMerchant } from '../support/merchant.ts';
import { openShop, type Shop } from '../support/shop.ts';
import { type Silence, type SilentNode, startSilentNode } from '../support/silent-node.ts';
import { scrape } from '../telemetry/scrape.ts';

/** Buyers of each kind of node: `BUYERS=300 node --test spec/e2e/silent-node.spec.ts` for the whole measurement. */
const BUYERS = Number(process.env['BUYERS'] ?? 8);
/** What `market_report` costs, and how much a buyer owns. */
const PRICE_UNITS = 10_000n;
const FUNDS = 4n * PRICE_UNITS;
/** How long a proof is valid, seconds, and how long the silence outlives the last one of those signed before it. */
const VALID_FOR_S = 15;
const AFTERWARDS_MS = 4_000;
const INPUT = { city: 'Berlin' };
/** Once the node speaks again everybody must have an end within this. */
const HEALED_WITHIN_MS = 60_000;

interface Outcome {
  readonly delivered: boolean;
  readonly signed: number;
  readonly statuses: readonly number[];
}

describe('a node that lies by silence', { concurrency: true }, () => {
  for (const silence of ['stuck', 'logless', 'dead'] as const satisfies readonly Silence[])
    describe(`a node that is ${silence}, with a facilitator that settles`, () => {
      let chain: Chain;
      let merchant: Merchant;
      let facilitator: Facilitator;
      let node: SilentNode;
      let shop: Shop;
      before(async () => {
        [chain, merchant] = await Promise.all([startChain(), startMerchant()]);
        [facilitator, node] = await Promise.all([startFacilitator(chain), startSilentNode(chain.rpcUrl)]);
        shop = await openShop({
          chain: { ...chain, rpcUrl: node.url },
          merchantUrl: merchant.url,
          facilitator: { mode: 'remote', url: facilitator.url },
          overrides: { payments: { x402: { maxTimeoutSeconds: VALID_FOR_S } } },
        });
      });
      after(async () => {
        await shop.close();
        await Promise.all([node.stop(), facilitator.stop(), merchant.stop(), chain.stop()]);
      });

      /** Word for word: the same proof again after whatever was answered, in as many seconds as are named, and a new one after 402 alone. */
      const buyAsTold = async (buyer: Buyer, over: () => boolean): Promise<Outcome> => {
        const statuses: number[] = [];
        for (let signed = 1; ; signed += 1) {
          const proof = await buyer.pay(await (await shop.invoke('market_report', INPUT)).json().then(envelope));
          for (;;) {
            const answer = await shop
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

      /** The cause is for the log and the metrics. */
      const assertNothingNewIsTaken = async (): Promise<void> => {
        const ready = await fetch(`${shop.url}/ready`);
        const body = (await ready.json()) as { readonly paymentProviders: readonly unknown[] };
        const failing = { name: 'x402', status: 'fail', detail: 'payment-provider-unreachable' };
        assert.deepEqual([ready.status, body.paymentProviders], [503, [failing]]);
        assert.equal((await scrape(shop.managementUrl)).get('acg_chain_fault{cause="missing"}'), 1);
        assert.ok(shop.logLines.some((line) => line.includes('"health"') && line.includes('without its logs')));
        const late = await createBuyer(chain, FUNDS);
        const proof = await late.pay(await (await shop.invoke('market_report', INPUT)).json().then(envelope));
        const answer = await shop.invoke('market_report', INPUT, { 'payment-signature': proof });
        const { code } = (await answer.json()) as { readonly code: string };
        assert.deepEqual([answer.status, code], [503, 'PAYMENT_PROVIDER_UNAVAILABLE']);
        assert.equal(answer.headers.get('payment-response'), null);
        assert.equal(await late.balance(), FUNDS);
      };

      it(`${BUYERS} buyers who do as they are told: at most one charge each, and goods once it speaks again`, async (t) => {
        const buyers = await Promise.all(Array.from({ length: BUYERS }, () => createBuyer(chain, FUNDS)));
        let healedAt = 0;
        const over = (): boolean => healedAt > 0 && performance.now() - healedAt > HEALED_WITHIN_MS;
        await node.become(silence);
        const outcomes = Promise.all(buyers.map((buyer) => buyAsTold(buyer, over)));
        await delay(VALID_FOR_S * 1_000 + AFTERWARDS_MS);
        const charged = await Promise.all(
          buyers.map(async (buyer) => Number((FUNDS - (await buyer.balance())) / PRICE_UNITS)),
        );
        const most = Math.max(...charged);
        if (silence === 'logless') await assertNothingNewIsTaken();
        await node.become('honest');
        // A block after the ends of all windows: the chain makes one only when there is something to put into it.
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
        assert.equal(undelivered, 0);
      });
    });
});

function envelope(body: unknown): unknown {
  return (body as { readonly payment: { readonly envelope: unknown } }).payment.envelope;
}
