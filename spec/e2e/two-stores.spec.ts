import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { createBuyer } from '../support/buyer.ts';
import { merged } from '../support/config.ts';
import { startFacilitator } from '../support/facilitator.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { startSampleBackend } from '../support/sample-backend.ts';
import { settledAfter } from '../support/settled-after.ts';
import { quoteOf } from '../support/testbed.ts';
import { type Brought, bring } from './bring.ts';
import { found } from './proofs.ts';

const RESOURCE = 'market_report';
const INPUT = { city: 'Berlin' };
const PRICE_UNITS = 10_000n;

/** How the gateways settle. `remote`: the chain confirms; `blind`: they have no node. */
const LANES = ['local', 'remote', 'blind'] as const;
/** Which gateway gets the proof when. */
const ORDERS = ['at once', 'X first', 'Y first'] as const;

/** What became of one authorization. */
interface Sold {
  /** 200 in any answer of this gateway. */
  readonly delivered: readonly boolean[];
  readonly answers: readonly Brought[];
  readonly receipts: readonly Receipt[];
  readonly paidUnits: bigint;
}

interface TwoStores {
  readonly gateways: readonly [TestGateway, TestGateway];
  /** Sends one authorization to both, then again, each time with the token of its own 402. */
  sell(order: (typeof ORDERS)[number]): Promise<Sold>;
  close(): Promise<void>;
}

/** What the gateways have in common. */
interface Surroundings {
  readonly chain: Chain;
  readonly facilitatorUrl: string;
  readonly backendUrl: string;
  close(): Promise<void>;
}

async function openSurroundings(): Promise<Surroundings> {
  const [chain, backend] = await Promise.all([startChain(), startSampleBackend()]);
  const facilitator = await startFacilitator(chain);
  return {
    ...{ chain, facilitatorUrl: facilitator.url, backendUrl: backend.url },
    close: async () => void (await Promise.all([facilitator.stop(), backend.stop(), chain.stop()])),
  };
}

/** Opens both gateways, with a payee of their own. */
async function openTwoStores(
  { chain, facilitatorUrl, backendUrl }: Omit<Surroundings, 'close'>,
  lane: (typeof LANES)[number],
  settle: 'before' | 'after',
): Promise<TwoStores> {
  const payTo = privateKeyToAddress(generatePrivateKey());
  const open = async (): Promise<TestGateway> => {
    const privateKey = generatePrivateKey();
    await chain.fundGas(privateKeyToAddress(privateKey));
    const x402 = {
      payToExclusive: false,
      ...(lane === 'local' ? { facilitator: { privateKey } } : {}),
      ...(lane === 'blind' ? { rpcUrl: undefined } : {}),
    };
    return openGateway({
      chain,
      backendUrl,
      payTo,
      facilitator: lane === 'local' ? { mode: 'local' } : { mode: 'remote', url: facilitatorUrl },
      overrides: merged(settle === 'after' ? settledAfter() : {}, { payments: { x402 } }),
    });
  };
  const gateways = [await open(), await open()] as const;
  return {
    gateways,
    sell: (order) => sellTwice(chain, payTo, gateways, order),
    close: async () => void (await Promise.all(gateways.map((gateway) => gateway.close()))),
  };
}

async function sellTwice(
  chain: Chain,
  payTo: string,
  gateways: TwoStores['gateways'],
  order: (typeof ORDERS)[number],
): Promise<Sold> {
  const before = await chain.balanceOf(payTo);
  // It could pay twice.
  const buyer = await createBuyer(chain, 2n * PRICE_UNITS);
  const envelopes = await Promise.all(
    gateways.map(async (gateway) => (await quoteOf(gateway, RESOURCE, INPUT)).body.payment.envelope),
  );
  const proof = await buyer.pay(envelopes[0]);
  const proofs = envelopes.map((envelope) => {
    const token = envelope.extensions?.['agent-commerce-buyer']?.info.token;
    return withoutResource(found(proof, token));
  });
  const send = (index: 0 | 1): Promise<Brought> =>
    bring(gateways[index], RESOURCE, INPUT, { proof: proofs[index] ?? '' });
  const answers: (readonly [0 | 1, Brought])[] = [];
  const note = async (index: 0 | 1): Promise<void> => void answers.push([index, await send(index)]);
  if (order === 'at once') {
    // Until the block both gateways find the authorization unspent.
    await chain.request('evm_setIntervalMining', [1]);
    await Promise.all([note(0), note(1)]);
    await chain.request('evm_setIntervalMining', [0]);
    await chain.request('evm_setAutomine', [true]);
  } else for (const index of order === 'X first' ? ([0, 1] as const) : ([1, 0] as const)) await note(index);
  for (const index of [0, 1] as const) await note(index);
  for (const [, { status, bytes }] of answers) assert.ok([200, 409, 502].includes(status), `${status} ${bytes}`);
  const pages = await Promise.all(gateways.map(({ store }) => store.receipts.page({ limit: 100 })));
  const isIt = ({ payment }: Receipt): boolean => payment?.payer.toLowerCase() === buyer.address.toLowerCase();
  return {
    delivered: [0, 1].map((index) => answers.some(([of, { status }]) => of === index && status === 200)),
    answers: answers.map(([, answer]) => answer),
    receipts: pages.flatMap(({ receipts }) => receipts.filter(isIt)),
    paidUnits: (await chain.balanceOf(payTo)) - before,
  };
}

/** A proof without the URL that its offer was for, which is not signed. */
function withoutResource(proof: string): string {
  const { resource: _url, ...payload } = JSON.parse(Buffer.from(proof, 'base64').toString()) as { resource?: unknown };
  return Buffer.from(JSON.stringify(payload)).toString('base64');
}

describe('one authorization and two stores with one payee', () => {
  let surroundings: Surroundings;
  before(async () => {
    surroundings = await openSurroundings();
  });
  after(() => surroundings.close());

  for (const lane of LANES)
    for (const settle of ['before', 'after'] as const)
      it(`it buys once: ${lane}, settle: ${settle}`, async () => {
        const stores = await openTwoStores(surroundings, lane, settle);
        try {
          for (const order of ORDERS.slice(0, settle === 'before' ? 2 : 1)) {
            const { delivered, receipts, paidUnits, answers } = await stores.sell(order);
            const seen = `${order}: ${answers.map(({ status }) => status).join(' ')}`;
            assert.equal(delivered.filter(Boolean).length, 1, seen);
            assert.equal(paidUnits, PRICE_UNITS, seen);
            const written = receipts.map((receipt) => [receipt.payment?.status, receipt.delivered]);
            assert.deepEqual(written, [['settled', true]], seen);
          }
        } finally {
          await stores.close();
        }
      });
});
