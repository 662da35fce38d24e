import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startAnvil } from '../../tools/local-world/anvil.ts';
import { startChain } from '../../tools/local-world/chain.ts';
import { termsFor } from '../payments/x402/signing.ts';
import { chainActors } from '../payments/x402/stage.ts';
import { createMint } from '../support/ap2/mint.ts';
import { until } from '../support/program.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { scrape } from '../telemetry/scrape.ts';
import { bring, failure } from './bring.ts';
import { trusting } from './mandate-seller.ts';
import { decode } from './proofs.ts';
import {
  CITY,
  FAR_CHAIN_ID,
  type FarBuyer,
  mandateFor,
  openTwoChains,
  priceOf,
  RESOURCE,
  type TwoChains,
} from './two-chains.ts';

/** Longest time until a chain that is back is offered again, milliseconds. */
const BACK_WITHIN_MS = 10_000;
const [NEAR, FAR] = ['eip155:31337', 'eip155:1337'];

const ends = new AsyncDisposableStack();
const mint = createMint();
const state = join(tmpdir(), `acg-network-lost-${process.pid}.json`);
let stand: TwoChains;
let buyer: FarBuyer;
let port: number;
/** Before the node of the near chain. */
let proxy: TcpProxy;
let stopFar: () => Promise<unknown>;
before(async () => {
  ends.defer(() => rmSync(state, { force: true }));
  const far = await startChain(0, state, FAR_CHAIN_ID);
  stopFar = far.stop;
  port = Number(new URL(far.rpcUrl).port);
  const near = await startChain();
  const node = { host: '127.0.0.1', port: Number(new URL(near.rpcUrl).port) };
  proxy = ends.adopt(await startTcpProxy(node), ({ stop }) => stop());
  const rpcUrls = [`http://127.0.0.1:${proxy.port}`];
  stand = await openTwoChains(ends, { near, far, overrides: trusting(mint, ['echo']), rpcUrls });
  buyer = await stand.buyer();
  await ready(WELL);
});
after(async () => {
  await stopFar();
  await ends.disposeAsync();
});

/** The far chain dies, and its facilitator with it. */
async function loseFar(): Promise<void> {
  const reset = () => ({ kind: 'reset' }) as const;
  stand.facilitator.script({ verify: reset, settle: reset, supported: reset });
  await stopFar();
}

/** The far chain again with its blocks, and its facilitator. */
async function restartFar(): Promise<void> {
  ({ stop: stopFar } = await startAnvil(port, state, FAR_CHAIN_ID));
  stand.facilitator.script(stand.relayed);
}

const WELL = '200 [{"name":"x402","status":"pass"}]';
const WARNS = '200 [{"name":"x402","status":"warn","detail":"payment-provider-degraded"}]';
const FAILS = '503 [{"name":"x402","status":"fail","detail":"payment-provider-unreachable"}]';

/** Waits until readiness is this. */
async function ready(expected: string): Promise<void> {
  await until(`readiness is ${expected}`, async () => {
    const answer = await fetch(`${stand.gateway.url}/ready`);
    const { paymentProviders } = (await answer.json()) as { readonly paymentProviders: unknown };
    return `${answer.status} ${JSON.stringify(paymentProviders)}` === expected;
  });
}

/** Waits until all is offered again, which may not take long. */
async function isBack(): Promise<void> {
  const since = performance.now();
  await ready(WELL);
  assert.ok(performance.now() - since < BACK_WITHIN_MS);
  assert.deepEqual(await offered(), [NEAR, FAR, FAR]);
}

/** The networks of `accepts`, and the one that the envelope shows. */
async function offered(): Promise<readonly string[]> {
  const { network, envelope } = (await stand.ask()).payment;
  assert.equal(network, envelope.accepts[0]?.network);
  return envelope.accepts.map((offer) => offer.network);
}

const pay = (proof: string) => bring(stand.gateway, RESOURCE, CITY, { proof });

describe('a chain that is dead', () => {
  it('leaves accepts while the other sells on, as log and metrics show, and is back in ten seconds with its proofs', async () => {
    const proof = await buyer.pay((await stand.ask()).payment.envelope, 1);
    await buyer.moves([10_000n, 10_000n, 0n], async () => {
      await loseFar();
      await ready(WARNS);
      assert.deepEqual(await offered(), [NEAR]);
      failure(await pay(proof), 503, 'PAYMENT_PROVIDER_UNAVAILABLE');
      const lost = stand.gateway.logLines.filter((line) => line.includes('is unreachable'));
      assert.deepEqual(
        lost.map((line) => JSON.parse(line).network),
        [FAR, FAR],
      );
      assert.equal((await pay(await buyer.pay((await stand.ask()).payment.envelope, 0))).status, 200);
      const series = await scrape(stand.gateway.managementUrl);
      for (const [network, settled] of [
        [NEAR, 1],
        [FAR, 0],
      ] as const) {
        assert.equal(series.get(`acg_rail_seconds_count{operation="settle",network="${network}"}`), settled);
        assert.equal(series.get(`acg_chain_fault{network="${network}",cause="clock"}`), 0);
        assert.ok(series.has(`acg_chain_head_age_seconds{network="${network}"}`));
      }
      assert.ok((series.get(`acg_relayer_transfers_left{network="${NEAR}"}`) ?? 0) > 0);
      await restartFar();
      await isBack();
      assert.equal((await pay(proof)).status, 200);
    });
  });

  it('leaves the first place of all that a 402 says, the checkout of its mandate too', async () => {
    proxy.cut();
    await ready(WARNS);
    assert.deepEqual(await offered(), [FAR, FAR]);
    const input = { said: 'this' };
    const ask = await stand.ask('echo', input);
    const header = mandateFor({ ...stand, mint }, buyer, input, ask, 0);
    const headers = { 'payment-signature': await buyer.pay(ask.payment.envelope, 0), 'agent-authorization': header };
    await buyer.moves([0n, 1_000n, 0n], async () => {
      const bought = await stand.gateway.invoke('echo', input, headers);
      assert.equal(bought.status, 200, await bought.text());
    });
    proxy.mend();
    await isBack();
  });

  it('fails readiness together with the other, and takes no proof', async () => {
    const ask = await stand.ask();
    const proofs = [await buyer.pay(ask.payment.envelope, 0), await buyer.pay(ask.payment.envelope, 1)];
    proxy.cut();
    await loseFar();
    await ready(FAILS);
    assert.deepEqual(await offered(), [NEAR, FAR, FAR]);
    for (const proof of proofs) failure(await pay(proof), 503, 'PAYMENT_PROVIDER_UNAVAILABLE');
    proxy.mend();
    await restartFar();
    await isBack();
    for (const [at, proof] of proofs.entries())
      await buyer.moves(priceOf(at), async () => assert.equal((await pay(proof)).status, 200));
  });
});

describe('a settlement that its chain dies in', () => {
  /** Brings the proof until it is delivered. */
  const insist = (proof: string) =>
    until('the answer', async () => {
      const { status, bytes } = await pay(proof);
      assert.ok(status === 200 || status === 502 || status === 503 || status === 409, bytes.toString());
      return status === 200;
    });

  it('is sent again once where the transaction died too', async () => {
    const { facilitator, relayed } = stand;
    const { chain } = stand.places[2] ?? assert.fail();
    const proof = await buyer.pay((await stand.ask()).payment.envelope, 2);
    const payload = decode(proof);
    facilitator.script({
      ...relayed,
      async settle() {
        // No block has it: the chain forgets it.
        await chainActors(chain, termsFor(chain.token)).broadcast({ payload, signedBy: 'account' } as never);
        await loseFar();
        return { kind: 'reset' };
      },
    });
    await buyer.moves(priceOf(2), async () => {
      failure(await pay(proof), 502, 'PAYMENT_SETTLEMENT_FAILED');
      await restartFar();
      await insist(proof);
    });
  });

  it('is found where the transaction lived and its answer was lost', async () => {
    const proof = await buyer.pay((await stand.ask()).payment.envelope, 0);
    await buyer.moves(priceOf(0), async () => {
      const lost = proxy.loseReply('eth_sendRawTransaction').then(() => proxy.cut());
      const answer = pay(proof);
      await lost;
      const { status } = await answer;
      assert.equal(status, 502);
      proxy.mend();
      await insist(proof);
    });
  });
});
