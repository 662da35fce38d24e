import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startChain } from '../../tools/local-world/chain.ts';
import { type Fault, startFaultyNode } from '../payments/x402/stage.ts';
import { createBuyer } from '../support/buyer.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { until } from '../support/program.ts';
import { startSampleBackend } from '../support/sample-backend.ts';
import { proofFor } from '../support/testbed.ts';
import { scrape } from '../telemetry/scrape.ts';

/** Longest time until readiness shows that a node is back, milliseconds. */
const BACK_WITHIN_MS = 10_000;

describe('a gateway of two networks', () => {
  const ends = new AsyncDisposableStack();
  const faults: [Fault, Fault] = ['pass', 'pass'];
  let gateway: TestGateway;
  let buy: () => Promise<number>;
  before(async () => {
    const [first, second, backend] = await Promise.all([
      startChain(),
      startChain(0, undefined, 1_337),
      startSampleBackend(),
    ]);
    for (const { stop } of [first, second, backend]) ends.defer(stop);
    const near = ends.adopt(await startFaultyNode(first.rpcUrl, () => faults[0]), ({ stop }) => stop());
    const far = ends.adopt(await startFaultyNode(second.rpcUrl, () => faults[1]), ({ stop }) => stop());
    const facilitator = { mode: 'local' } as const;
    gateway = await openGateway({
      chain: { ...first, rpcUrl: near.url },
      ...{ backendUrl: backend.url, facilitator },
      others: [{ chain: { ...second, rpcUrl: far.url }, facilitator }],
    });
    ends.defer(() => gateway.close());
    const buyer = await createBuyer(first);
    buy = async () => {
      const proof = await proofFor(gateway, buyer, 'market_report', { city: 'Berlin' });
      const answer = await gateway.invoke('market_report', { city: 'Berlin' }, { 'payment-signature': proof });
      await answer.arrayBuffer();
      return answer.status;
    };
  });
  after(() => ends.disposeAsync());

  const readiness = async () => {
    const answer = await fetch(`${gateway.url}/ready`);
    const { paymentProviders } = (await answer.json()) as { readonly paymentProviders: readonly unknown[] };
    return JSON.stringify([answer.status, paymentProviders]);
  };
  const WELL = '[200,[{"name":"x402","status":"pass"}]]';

  it('warns while one is away, sells on the other, and is well when it is back', async () => {
    await until('both are there', async () => (await readiness()) === WELL);
    faults[1] = 'reset';
    const warned = '[200,[{"name":"x402","status":"warn","detail":"payment-provider-degraded"}]]';
    await until('readiness warns', async () => (await readiness()) === warned);
    assert.equal(await buy(), 200);
    assert.ok(gateway.logLines.some((line) => /"network":"eip155:1337".*is unreachable/.test(line)));
    assert.ok(!gateway.logLines.some((line) => /"network":"eip155:31337".*is unreachable/.test(line)));
    faults[1] = 'pass';
    const since = performance.now();
    await until('readiness is well', async () => (await readiness()) === WELL);
    assert.ok(performance.now() - since < BACK_WITHIN_MS);
  });

  it('fails while both are away', async () => {
    faults.fill('reset');
    const failed = '[503,[{"name":"x402","status":"fail","detail":"payment-provider-unreachable"}]]';
    await until('readiness fails', async () => (await readiness()) === failed);
    faults.fill('pass');
    await until('readiness is well', async () => (await readiness()) === WELL);
  });

  it('shows what is of one network with its name', async () => {
    const series = await scrape(gateway.managementUrl);
    for (const network of ['eip155:31337', 'eip155:1337']) {
      assert.ok((series.get(`acg_relayer_transfers_left{network="${network}"}`) ?? 0) > 0);
      assert.equal(series.get(`acg_chain_fault{network="${network}",cause="clock"}`), 0);
      assert.ok(series.has(`acg_chain_head_age_seconds{network="${network}"}`));
      const settled = series.get(`acg_rail_seconds_count{operation="settle",network="${network}"}`);
      assert.equal(settled, network === 'eip155:31337' ? 1 : 0);
    }
  });
});
