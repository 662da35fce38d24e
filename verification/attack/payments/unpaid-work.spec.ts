import assert from 'node:assert/strict';
import { after, before, beforeEach, describe } from 'node:test';
import { encodeFunctionData } from 'viem';
import { type Buyer, createBuyer } from '../../../spec/support/buyer.ts';
import { merged } from '../../../spec/support/config.ts';
import { openGateway, type TestGateway } from '../../../spec/support/gateway.ts';
import { answerJson } from '../../../spec/support/http-server.ts';
import { eventsUntil } from '../../../spec/support/records.ts';
import { type Route, route, type SampleBackend, startSampleBackend } from '../../../spec/support/sample-backend.ts';
import { seenHangUp } from '../../../spec/support/seen-hang-up.ts';
import { settledAfter } from '../../../spec/support/settled-after.ts';
import { type Chain, startChain } from '../../../tools/local-world/chain.ts';
import { TOKEN_ABI } from '../../../tools/local-world/contracts.ts';
import { attack } from '../catalogue.ts';
import { buy, type Seen } from './channels.ts';

const COIN_UNITS = 10_000n;
const WALLETS = 50;
/** Proofs of one wallet at the same time. */
const COPIES = 3;
/** Of a call of the backend, milliseconds: longer than fifty wallets take on a slow machine. */
const TIMEOUT_MS = 120_000;
/** The budget, in calls. */
const LIMITS = { perNetwork: 4, perResource: 6, all: 9 } as const;

type Sold = 'market_report' | 'greeting';
const INPUTS: Readonly<Record<Sold, object>> = { market_report: { city: 'Berlin' }, greeting: {} };

const PATIENT = { backend: { timeoutMs: TIMEOUT_MS } };

interface Terms {
  readonly accepts: readonly { readonly extra: { readonly paymentFlow: string } }[];
}

describe('work for nothing from a merchant whose resources are settled after their calls', () => {
  let chain: Chain;
  let backend: SampleBackend;
  let gateway: TestGateway;
  /** The backend answers no call that came since the last wallet before this. */
  let moved = Promise.withResolvers<void>();
  before(async () => {
    chain = await startChain();
    const answer: Route['answer'] = async (_, response) => {
      await moved.promise;
      answerJson(response, 200, { worked: true });
    };
    backend = await startSampleBackend({ routes: [route('GET', '/.*', answer)] });
  });
  beforeEach(async () => {
    await gateway?.close();
    backend.forget();
    gateway = await openGateway({
      ...{ chain, backendUrl: backend.url, facilitator: { mode: 'local' } },
      overrides: merged(settledAfter('noisy'), {
        server: { trustProxy: 1 },
        limits: { unpaidWork: LIMITS },
        payments: { x402: { maxTimeoutSeconds: 300 } },
        resources: { market_report: PATIENT, greeting: PATIENT },
      }),
    });
  });
  after(async () => {
    moved.resolve();
    await gateway?.close();
    await Promise.all([chain?.stop(), backend?.stop()]);
  });

  const from = (network: number) => ({ 'x-forwarded-for': `10.0.${network}.1` });
  const income = (): Promise<bigint> => chain.balanceOf(gateway.config.x402?.payTo ?? '');
  const termsOf = async (id: string, network: number, input: object = {}): Promise<Terms> => {
    const { body } = await gateway
      .invoke(id, input, from(network))
      .then(async (answer) => ({ body: (await answer.json()) as { readonly payment: { readonly envelope: Terms } } }));
    return body.payment.envelope;
  };
  const flowOf = async (id: Sold, network: number): Promise<string | undefined> =>
    (await termsOf(id, network, INPUTS[id])).accepts[0]?.extra.paymentFlow;
  /** A proof that accepts to be settled after the call, whatever is offered. */
  const proofOf = async (wallet: Buyer, id: Sold, network: number): Promise<string> => {
    const terms = await termsOf(id, network, INPUTS[id]);
    const accepts = terms.accepts.map((one) => ({ ...one, extra: { ...one.extra, paymentFlow: 'authorization' } }));
    return wallet.pay({ ...terms, accepts });
  };
  const bring = (proof: string, id: Sold, network: number): Promise<Seen> =>
    buy(gateway.url, 'http', { resourceId: id, input: INPUTS[id], proof, headers: from(network) });
  const move = async (owner: Buyer, to: Buyer): Promise<void> => {
    await chain.fundGas(owner.address);
    await chain.request('anvil_impersonateAccount', [owner.address]);
    const args = [to.address, await owner.balance()] as const;
    const call = encodeFunctionData({ abi: TOKEN_ABI, functionName: 'transfer', args });
    await chain.send(owner.address, chain.token.address, call);
  };

  /**
   * Moves one coin through wallets, from each to the next while the backend works on its calls.
   * @returns how often the backend answered
   */
  const attackWith = async (wallets: number, id: Sold, network: number): Promise<number> => {
    const asked = backend.requests.length;
    let owner = await createBuyer(chain, COIN_UNITS);
    for (let spent = 0; spent < wallets; spent += 1) {
      const wallet = owner;
      const next = await createBuyer(chain, 0n);
      const proofs = await Promise.all(Array.from({ length: COPIES }, () => proofOf(wallet, id, network)));
      moved = Promise.withResolvers<void>();
      const arrived = backend.nextRequest('/');
      const answers = Promise.all(proofs.map((proof) => bring(proof, id, network)));
      await Promise.race([arrived, answers]);
      await move(owner, next);
      moved.resolve();
      for (const { outcome, everything } of await answers) assert.notEqual(outcome, 'delivered', everything);
      owner = next;
    }
    return backend.requests.length - asked;
  };

  attack(
    'X21',
    `one coin in ${WALLETS} wallets, parallel proofs, moved while the backend works: no more answers than the budget stay unpaid`,
    async () => {
      assert.equal(await flowOf('market_report', 1), 'authorization');
      assert.equal(await attackWith(WALLETS, 'market_report', 1), LIMITS.perNetwork);
      assert.deepEqual([await flowOf('market_report', 1), await flowOf('greeting', 1)], ['upfront', 'upfront']);
      assert.deepEqual(
        [await flowOf('market_report', 2), await flowOf('greeting', 2)],
        ['authorization', 'authorization'],
      );

      assert.equal(await attackWith(5, 'market_report', 2), LIMITS.perResource - LIMITS.perNetwork);
      assert.deepEqual([await flowOf('market_report', 3), await flowOf('greeting', 3)], ['upfront', 'authorization']);

      assert.equal(await attackWith(5, 'greeting', 3), LIMITS.all - LIMITS.perResource);
      assert.deepEqual([await flowOf('greeting', 4), await income()], ['upfront', 0n]);

      // Others buy with their money first.
      const buyer = await createBuyer(chain);
      const requestId = 'after-the-attack';
      const url = `${gateway.url}/api/resources/greeting/invoke`;
      const headers = { 'content-type': 'application/json', 'x-request-id': requestId, ...from(5) };
      const bought = await buyer.fetch(url, { method: 'POST', headers, body: '{}' });
      assert.equal(bought.status, 200);
      const events = await eventsUntil(gateway, requestId, 'resource.delivered');
      const types = events.map(({ type }) => type);
      assert.deepEqual(types.slice(-3), ['payment.settled', 'backend.called', 'resource.delivered']);
    },
  );

  attack('X21', 'callers that leave while the backend works: no more answers than the budget stay unpaid', async () => {
    moved = Promise.withResolvers<void>();
    moved.resolve();
    const wallet = await createBuyer(chain, COIN_UNITS);
    let asked = 0;
    for (let left = 0; left < WALLETS; left += 1) {
      const proof = await proofOf(wallet, 'market_report', 1);
      moved = Promise.withResolvers<void>();
      const leaving = new AbortController();
      const arrived = backend.nextRequest('/');
      const call = fetch(`${gateway.url}/api/resources/market_report/invoke`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'payment-signature': proof, ...from(1) },
        body: JSON.stringify(INPUTS.market_report),
        signal: leaving.signal,
      }).then(
        (answer) => answer.status,
        () => 0,
      );
      const refused = await Promise.race([arrived.then(() => undefined), call]);
      leaving.abort();
      await call;
      await seenHangUp(gateway.url);
      moved.resolve();
      if (refused === undefined) asked += 1;
      else assert.equal(refused, 402);
    }
    assert.deepEqual([asked, backend.requests.length, await income()], [LIMITS.perNetwork, LIMITS.perNetwork, 0n]);
    assert.deepEqual(
      [await flowOf('market_report', 1), await flowOf('market_report', 2)],
      ['upfront', 'authorization'],
    );
  });
});
