import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { answerJson, resetConnection } from '../support/http-server.ts';
import { eventually } from '../support/records.ts';
import { type Route, route, type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { settledAfter } from '../support/settled-after.ts';
import { proofFor } from '../support/testbed.ts';
import { bring } from './bring.ts';

const ID = 'market_report';
const PRICE_UNITS = 10_000n;
const CALLS = 300;
/** A payer has one call at a time, so as many calls run side by side. */
const BUYERS = 10;

/** Three of ten calls fail, each in another way. */
const FAILS: readonly Route['answer'][] = [
  (_, response) => answerJson(response, 500, { error: 'not now' }),
  (_, response) => resetConnection(response),
  (_, response) => {
    response.writeHead(200, { 'content-length': '1000' });
    response.write('0123456789', () => response.socket?.destroy());
  },
];

describe('a merchant that fails three of ten calls, settled after them', () => {
  let chain: Chain;
  let backend: SampleBackend;
  let gateway: TestGateway;
  let buyers: readonly Buyer[];
  before(async () => {
    chain = await startChain();
    const answer: Route['answer'] = (request, response, state) => {
      const number = Number(request.url.split('/')[2]);
      const fails = FAILS[number % 10];
      if (fails === undefined) answerJson(response, 200, { number });
      else return fails(request, response, state);
    };
    backend = await startSampleBackend({ routes: [route('GET', '/reports/\\d+', answer)] });
    const parts = { chain, backendUrl: backend.url, facilitator: { mode: 'local' } } as const;
    // Each failed call counts as unpaid work: with less of it the payment would come first.
    const limits = { unpaidWork: { perResource: CALLS, perNetwork: CALLS, all: CALLS } };
    gateway = await openGateway({ ...parts, overrides: { ...settledAfter(), limits } });
    buyers = await Promise.all(Array.from({ length: BUYERS }, () => createBuyer(chain)));
  });
  after(async () => {
    await gateway?.close();
    await Promise.all([chain?.stop(), backend?.stop()]);
  });

  it(`of ${CALLS} calls it is paid for each that succeeded, once, and for none that failed`, async () => {
    const funds = await Promise.all(buyers.map((buyer) => buyer.balance()));
    const answered = buyers.map(() => 0);
    const numbers = Array.from({ length: CALLS }, (_, number) => number);
    const buy = async (buyer: Buyer, at: number): Promise<void> => {
      for (let number = numbers.shift(); number !== undefined; number = numbers.shift()) {
        const input = { city: String(number) };
        const bought = await bring(gateway, ID, input, { proof: await proofFor(gateway, buyer, ID, input) });
        const fails = number % 10 < FAILS.length;
        assert.equal(bought.status, fails ? 502 : 200, bought.bytes.toString());
        if (!fails) assert.deepEqual(JSON.parse(bought.bytes.toString()), { number });
        answered[at] = (answered[at] ?? 0) + (fails ? 0 : 1);
      }
    };
    await Promise.all(buyers.map(buy));

    const spent = await Promise.all(buyers.map(async (buyer, at) => (funds[at] ?? 0n) - (await buyer.balance())));
    assert.deepEqual(
      spent,
      answered.map((count) => BigInt(count) * PRICE_UNITS),
      'each buyer paid for what it was given',
    );
    const successes = (CALLS / 10) * (10 - FAILS.length);
    assert.equal(await chain.balanceOf(gateway.config.x402?.payTo ?? ''), BigInt(successes) * PRICE_UNITS);
    // A connection that breaks before an answer is tried once more, under the same key.
    assert.equal(new Set(backend.requests.map(({ idempotencyKey }) => idempotencyKey)).size, CALLS);
    await eventually(async () => {
      const { receipts: delivered } = (await (
        await gateway.operator('/api/receipts?limit=500&delivered=true')
      ).json()) as {
        readonly receipts: readonly { readonly payment?: { readonly externalReference: string } }[];
      };
      return delivered.length === successes ? delivered : undefined;
    }, 'a receipt of each success');
    assert.deepEqual(await gateway.store.ledger.unpaid(CALLS), []);
  });
});
