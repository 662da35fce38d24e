import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { MOST_COPIES } from '../../src/payments/settlement/settle.ts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { type Facilitator, startFacilitator } from '../support/facilitator.ts';
import { type GatewayProcess, prepareGateway } from '../support/gateway-process.ts';
import { type HostileFacilitator, relayTo, startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { askPrice } from '../support/purchase.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { spellingsOfOneAuthorization } from './proofs.ts';

const COPIES = 100;
const ROUNDS = 10;
const PRICE_UNITS = 1_000n;
/** No load balancer stands before the processes: copy n goes to gateway n modulo this. */
const GATEWAYS = 2;
/** The first copy and those that wait for its answer share the slots of one proof. */
const MOST_ANSWERED = GATEWAYS * MOST_COPIES;

/** What a caller can see of an answer, but for the id of its own request. */
interface Seen {
  readonly status: number;
  readonly body: string;
  readonly payment: string | undefined;
  readonly replayed: string | undefined;
}

describe('a hundred copies of one proof in twenty spellings, over two processes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-join-'));
  const payTo = privateKeyToAddress(generatePrivateKey());
  const agent = new http.Agent({ keepAlive: true });
  const gateways: GatewayProcess[] = [];
  let chain: Chain;
  let backend: SampleBackend;
  let redis: TestRedis;
  let official: Facilitator;
  /** Records every call and relays it to the official one. */
  let observed: HostileFacilitator;
  let buyer: Buyer;

  before(async () => {
    [chain, backend, redis] = await Promise.all([startChain(), startSampleBackend(), startRedis()]);
    official = await startFacilitator(chain);
    observed = await startHostileFacilitator('eip155:31337');
    observed.script({ verify: relayTo(official.url), settle: relayTo(official.url) });
    buyer = await createBuyer(chain);
    for (let n = 0; n < GATEWAYS; n += 1) {
      const prepared = await prepareGateway(folder, {
        backendUrl: backend.url,
        chain,
        payTo,
        storage: { redis: { url: redis.url } },
        facilitator: { mode: 'remote', url: observed.url },
        // One address for both: the offer must not depend on who makes it.
        overrides: { merchant: { publicBaseUrl: 'http://127.0.0.1:1' } },
      });
      gateways.push(await prepared.start());
    }
  });
  after(async () => {
    agent.destroy();
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await Promise.all([observed.stop(), official.stop(), backend.stop(), redis.stop(), chain.stop()]);
    rmSync(folder, { recursive: true, force: true });
  });

  const base = (n: number): string => gateways[n % GATEWAYS]?.baseUrl ?? '';
  const send = (n: number, headers: http.OutgoingHttpHeaders): Promise<Seen> => {
    const seen = Promise.withResolvers<Seen>();
    const options = { method: 'POST', agent, headers: { 'content-type': 'application/json', ...headers } };
    const request = http.request(`${base(n)}/api/resources/held/invoke`, options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const { statusCode: status = 0, headers: given } = response;
        const replayed = given['idempotent-replayed'];
        seen.resolve({
          status,
          body: Buffer.concat(chunks).toString(),
          payment: given['payment-response'] as string | undefined,
          replayed: replayed === undefined ? undefined : String(replayed),
        });
      });
    });
    request.on('error', seen.reject);
    request.end('{}');
    return seen.promise;
  };
  const asked = (path: string): number => observed.calls.filter((call) => call.path === path).length;

  /** The merchant answers the first copy when all others are refused or wait for that answer. */
  const round = async (key?: string): Promise<readonly Seen[]> => {
    backend.hold();
    backend.forget();
    const { paymentRequired } = await askPrice(base(0), 'held', '{}');
    const spellings = spellingsOfOneAuthorization(await buyer.pay(paymentRequired));
    assert.equal(new Set(spellings).size, 20);
    const headersOf = (n: number): http.OutgoingHttpHeaders => ({
      'payment-signature': spellings[n % spellings.length] ?? '',
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    });
    const copies = Array.from({ length: COPIES }, (_, n) => send(n, headersOf(n)));
    let open = COPIES;
    const refused = Promise.withResolvers<void>();
    for (const seen of copies)
      void seen.then(() => {
        open -= 1;
        if (open <= MOST_ANSWERED) refused.resolve();
      });
    await refused.promise;
    backend.release();
    const seen = await Promise.all(copies);
    const first = seen.find(({ status }) => status === 200);
    const joined = seen.filter(({ status }) => status === 200);
    assert.ok(joined.length >= 2 && joined.length <= MOST_ANSWERED, `${joined.length} answered`);
    for (const { status, body } of seen) if (status !== 200) assert.match(`${status} ${body}`, /^409 .*"in_flight"/);
    const again = seen.map(async (one, n) => (one.status === 200 ? one : send(n, headersOf(n))));
    for (const { status, body } of await Promise.all(again)) if (status === 409) assert.match(body, /"in_flight"/);
    assert.ok(first !== undefined);
    return joined;
  };

  /** A process whose copies find the claim of the other one verifies nothing. */
  const assertOnce = (before: { readonly verify: number; readonly settle: number }, round = 0): void => {
    const verified = asked('/verify') - before.verify;
    assert.ok(verified >= 1 && verified <= GATEWAYS, `${verified} verifications`);
    assert.deepEqual([asked('/settle') - before.settle, backend.requests.length], [1, 1], `round ${round}`);
  };

  it(`a verification in each process, one settlement, one execution and equal answers to all of ${COPIES} that are answered, ${ROUNDS} rounds`, async () => {
    for (let at = 0; at < ROUNDS; at += 1) {
      const before = { verify: asked('/verify'), settle: asked('/settle'), income: await chain.balanceOf(payTo) };
      const answers = await round();
      const [first] = answers;
      assert.deepEqual([first?.status, first?.body], [200, '{"held":true}']);
      assert.ok(first?.payment !== undefined);
      for (const answer of answers) assert.deepEqual(answer, first);
      assertOnce(before, at);
      assert.equal((await chain.balanceOf(payTo)) - before.income, PRICE_UNITS);
    }
  });

  it('with one key: the same', async () => {
    const before = { verify: asked('/verify'), settle: asked('/settle') };
    const answers = await round('the key of all copies');
    const [first] = answers;
    for (const { replayed: _mark, ...answer } of answers) {
      const { replayed: _first, ...expected } = first ?? {};
      assert.deepEqual(answer, expected);
    }
    assert.equal(first?.status, 200);
    assertOnce(before);
  });
});
