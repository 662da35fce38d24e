import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { type GatewayProcess, type PreparedGateway, prepareGateway } from '../support/gateway-process.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { proofFor } from '../support/testbed.ts';

const RESOURCE = 'market_report';
const INPUT = { city: 'Zurich' };
const AT_ONCE = 6;
const SOON_MS = 90_000;

describe('two gateways with one relayer', () => {
  const ends = new AsyncDisposableStack();
  const payTo = privateKeyToAddress(generatePrivateKey());
  let chain: Chain;
  let backend: SampleBackend;
  let redis: TestRedis;
  let relayer: string;
  let prepared: readonly PreparedGateway[];
  let gateways: GatewayProcess[];
  let price: bigint;

  before(async () => {
    chain = await startChain();
    ends.defer(() => chain.stop());
    backend = await startSampleBackend();
    ends.defer(() => backend.stop());
    redis = await startRedis();
    ends.defer(() => redis.stop());
    relayer = privateKeyToAddress(chain.relayerKey).toLowerCase();
    const directory = await temporaryDirectory(ends, 'relayers-');
    const parts = {
      ...{ chain, backendUrl: backend.url, payTo, facilitator: { mode: 'local' } as const },
      storage: { redis: { url: redis.url } },
      // Of both: a proof names the address of what it buys.
      overrides: { merchant: { publicBaseUrl: 'http://127.0.0.1:8080' } },
    };
    prepared = [await prepareGateway(directory, parts), await prepareGateway(directory, parts)];
    gateways = await Promise.all(prepared.map((gateway) => gateway.start()));
    ends.defer(async () => void (await Promise.all(gateways.map((gateway) => gateway.stop()))));
  });
  after(() => ends.disposeAsync());

  const at = ({ baseUrl }: GatewayProcess) => ({
    invoke: (resourceId: string, input: unknown = {}, headers: Readonly<Record<string, string>> = {}) =>
      fetch(`${baseUrl}/api/resources/${resourceId}/invoke`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(input),
      }),
  });
  const pay = async (gateway: GatewayProcess, proof: string): Promise<number> => {
    const answer = await at(gateway).invoke(RESOURCE, INPUT, { 'payment-signature': proof });
    await answer.arrayBuffer();
    return answer.status;
  };
  /** How many transactions of the relayer are in blocks. */
  const sent = async (): Promise<number> => Number(await chain.request('eth_getTransactionCount', [relayer, 'latest']));
  const gatewayAt = (index: number): GatewayProcess => gateways[index] ?? assert.fail(`gateway ${index} runs`);

  it('send from its account at once, and settle each payment once', async () => {
    const buyers = await Promise.all(Array.from({ length: 2 * AT_ONCE }, (): Promise<Buyer> => createBuyer(chain)));
    const proofs = await Promise.all(
      buyers.map((buyer, index) => proofFor(at(gatewayAt(index % 2)), buyer, RESOURCE, INPUT)),
    );
    const before = await sent();
    const statuses = await Promise.all(proofs.map((proof, index) => pay(gatewayAt(index % 2), proof)));
    assert.deepEqual(new Set(statuses), new Set([200]));
    assert.ok((await sent()) >= before + 2, 'a transaction of each at least');
    const income = await chain.balanceOf(payTo);
    price = income / BigInt(statuses.length);
    assert.ok(price > 0n);
    assert.equal(income, price * BigInt(statuses.length));
  });

  it('judge what the other one sent before it died, and a new process sends after it', async () => {
    const [dying, other] = [gatewayAt(0), gatewayAt(1)];
    const before = await chain.balanceOf(payTo);
    const proof = await proofFor(at(other), await createBuyer(chain), RESOURCE, INPUT);
    await chain.request('evm_setAutomine', [false]);
    const lost = pay(dying, proof).catch(() => 'no answer');
    const waiting = async (): Promise<number> =>
      Number(((await chain.request('txpool_status', [])) as { readonly pending: string }).pending);
    await eventually(async () => (await waiting()) === 1, 'its transaction waits for a block');
    await dying.kill();
    assert.equal(await lost, 'no answer');
    await chain.request('evm_mine', []);
    await chain.request('evm_setAutomine', [true]);
    // The lease on the record ends first.
    await eventually(async () => (await pay(other, proof)) === 200, 'the payment is delivered');
    assert.equal(await chain.balanceOf(payTo), before + price, 'paid once');

    const fresh = await (prepared[0] ?? assert.fail('it was prepared')).start();
    gateways[0] = fresh;
    assert.equal(await pay(fresh, await proofFor(at(fresh), await createBuyer(chain), RESOURCE, INPUT)), 200);
    assert.equal(await chain.balanceOf(payTo), before + 2n * price);
  });
});

async function eventually(holds: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + SOON_MS;
  while (!(await holds())) {
    assert.ok(performance.now() < deadline, `in time: ${what}`);
    await delay(100);
  }
}
