import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it, mock } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { encodeFunctionData } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { LOCAL_CHAIN_ID } from '../../src/payments/pricing/networks.ts';
import { backendIdempotencyKey } from '../../src/payments/settlement/terms.ts';
import { SIMULATION_FRESH_MS } from '../../src/payments/x402/local/lane.ts';
import { replayKey } from '../../src/payments/x402/wire/proof.ts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { TOKEN_ABI } from '../../tools/local-world/contracts.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { answerBytes, answerJson } from '../support/http-server.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { eventsUntil, eventually, receiptWhen } from '../support/records.ts';
import { type Route, route, type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { seenHangUp } from '../support/seen-hang-up.ts';
import { settledAfter } from '../support/settled-after.ts';
import { proofFor, type Quote } from '../support/testbed.ts';
import { type Brought, bring, failure, read, replayed } from './bring.ts';
import { decode, found } from './proofs.ts';

type Answering = Route['answer'];

const ID = 'market_report';
const CITY = { city: 'Berlin' };
const PRICE_UNITS = 10_000n;
/** Of the backend, milliseconds. */
const TIMEOUT_MS = 2_000;
/** The largest answer that is kept, and so sold, bytes. */
const MOST_BYTES = 262_144;
/** Longer than any proof of this gateway lives, milliseconds. */
const WINDOW_MS = 130_000;

const GOOD: Answering = (_, response) => answerJson(response, 200, { sold: true });

interface Failing {
  readonly answer: Answering;
  readonly status: number;
  readonly code: 'BACKEND_ERROR' | 'BACKEND_TIMEOUT';
  readonly reason: string;
}

/** How a backend may fail a call, and what its buyer learns. */
const FAILURES: Readonly<Record<string, Failing>> = {
  'answers 500': {
    answer: (_, response) => answerJson(response, 500, {}),
    ...{ status: 502, code: 'BACKEND_ERROR', reason: 'backend_5xx' },
  },
  'does not answer in time': { answer: () => undefined, status: 504, code: 'BACKEND_TIMEOUT', reason: 'timeout' },
  'answers more than can be kept': {
    answer: (_, response) => answerBytes(response, 200, 'text/plain', Buffer.alloc(MOST_BYTES + 1)),
    ...{ status: 502, code: 'BACKEND_ERROR', reason: 'response_too_large' },
  },
};

describe('a call that is settled after the backend answered, and that is not paid', () => {
  let chain: Chain;
  let backend: SampleBackend;
  let gateway: TestGateway;
  let buyer: Buyer;
  let answer = GOOD;
  /** How far the clock of the gateway is ahead, milliseconds. */
  let aheadMs = 0;

  before(async () => {
    const now = Date.now.bind(Date);
    mock.method(Date, 'now', () => now() + aheadMs);
    chain = await startChain();
    const answering: Answering = (...exchange) => answer(...exchange);
    backend = await startSampleBackend({ routes: [route('GET', '/reports/[^/]+', answering)] });
    const { resources, ...others } = settledAfter();
    const [one, ...rest] = Object.entries(resources as Record<string, { readonly backend: object }>).filter(
      ([id]) => id === ID,
    );
    assert.deepEqual([one?.[0], rest], [ID, []]);
    gateway = await openGateway({
      ...{ chain, backendUrl: backend.url, facilitator: { mode: 'local' } },
      overrides: {
        ...others,
        resources: { [ID]: { ...one?.[1], backend: { ...one?.[1].backend, timeoutMs: TIMEOUT_MS } } },
      },
    });
  });
  after(async () => {
    await gateway?.close();
    await Promise.all([chain?.stop(), backend?.stop()]);
    mock.restoreAll();
  });
  beforeEach(async () => {
    buyer = await createBuyer(chain);
    answer = GOOD;
    backend.forget();
  });

  const income = (): Promise<bigint> => chain.balanceOf(gateway.config.x402?.payTo ?? '');
  const buyWith = (proof: string): Promise<Brought> => bring(gateway, ID, CITY, { proof });
  const payIdOf = (proof: string): string => {
    const { from, nonce } = decode(proof).payload.authorization as { from: string; nonce: string };
    return replayKey({ chainId: LOCAL_CHAIN_ID, asset: chain.token.address, from, nonce });
  };
  const receiptsOf = async (requestId: string): Promise<number> => {
    const { receipts } = (await (await gateway.operator(`/api/receipts?requestId=${requestId}`)).json()) as {
      readonly receipts: readonly unknown[];
    };
    return receipts.length;
  };
  /** How many answers were made and not paid for, as the metric counts them. */
  const counted = async (cause: 'refused' | 'failed' | 'too_large'): Promise<number> => {
    const text = await readMetrics(gateway.managementUrl);
    return Number(new RegExp(`acg_unpaid_work_total\\{cause="${cause}"\\} (\\d+)`).exec(text)?.[1]);
  };
  const isUnpaid = async (proof: string): Promise<boolean> =>
    (await gateway.store.ledger.unpaid(100)).some(({ payId }) => payId === payIdOf(proof));
  /** The backend answers when this resolves; `arrived` when it has the call. */
  const heldUntil = (released: Promise<unknown>): { readonly arrived: Promise<void> } => {
    const { promise: arrived, resolve } = Promise.withResolvers<void>();
    answer = async (_, response) => {
      resolve();
      await released;
      answerJson(response, 200, { sold: true });
    };
    return { arrived };
  };
  const moveAll = async (from: Buyer, to: string): Promise<void> => {
    const args = [to as `0x${string}`, await from.balance()] as const;
    await chain.fundGas(from.address);
    await chain.request('anvil_impersonateAccount', [from.address]);
    await chain.send(
      from.address,
      chain.token.address,
      encodeFunctionData({ abi: TOKEN_ABI, functionName: 'transfer', args }),
    );
  };
  /** The document to sign of a 402, and whether it names an answer that waits. */
  const owed = (answered: Brought) => {
    assert.equal(answered.status, 402, answered.bytes.toString());
    const { payment } = JSON.parse(answered.bytes.toString()) as Quote['body'];
    const token = payment.envelope.extensions?.['agent-commerce-buyer']?.info.token ?? '';
    return { envelope: payment.envelope, names: token.includes('.') };
  };
  /** Buys with the next proof, for the 402 that answered the last one. */
  const buyAnew = async (refused: Brought): Promise<Brought> => buyWith(await buyer.pay(owed(refused).envelope));

  /** Brings the proof, empties the wallet during the work, and lets the backend answer. */
  const bringAndEmpty = async (proof: string, workMs: number): Promise<Brought> => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { arrived } = heldUntil(released);
    const answered = buyWith(proof);
    await arrived;
    await moveAll(buyer, privateKeyToAddress(generatePrivateKey()));
    await delay(workMs);
    release();
    return answered;
  };

  for (const [what, { answer: failing, status, code, reason }] of Object.entries(FAILURES))
    it(`the backend ${what}: no money moves, and the same proof buys later`, async () => {
      const proof = await proofFor(gateway, buyer, ID, CITY);
      const cause = reason === 'response_too_large' ? 'too_large' : 'failed';
      const [funds, earned, worked] = [await buyer.balance(), await income(), await counted(cause)];
      answer = failing;
      const failed = await buyWith(proof);
      const { details } = failure(failed, status, code);
      assert.deepEqual([details.reason, 'status' in details], [reason, false], 'of a status its class alone is told');
      assert.equal(failed.payment, undefined);
      assert.deepEqual([await buyer.balance(), await income()], [funds, earned]);
      const events = await eventsUntil(gateway, failed.requestId, 'backend.failed');
      assert.deepEqual(
        events.map(({ type }) => type),
        ['resource.requested', 'payment.verified', 'backend.failed'],
      );
      assert.equal(await receiptsOf(failed.requestId), 0);
      assert.equal(await gateway.store.ledger.read(payIdOf(proof)), undefined);
      assert.equal(await counted(cause), worked + 1);
      const { unpaid } = (await (await gateway.operator('/api/receipts/unpaid?limit=1')).json()) as {
        readonly unpaid: readonly object[];
      };
      assert.partialDeepStrictEqual(unpaid, [{ replayKey: payIdOf(proof), requestId: failed.requestId, reason }]);

      answer = GOOD;
      const bought = await buyWith(proof);
      assert.deepEqual([bought.status, bought.bytes.toString()], [200, '{"sold":true}']);
      assert.deepEqual([funds - (await buyer.balance()), (await income()) - earned], [PRICE_UNITS, PRICE_UNITS]);
      await receiptWhen(gateway, bought.requestId, true);
    });

  it('the payer empties its wallet during the work: no answer, no receipt, and its next proof buys what was made', async () => {
    const proof = await proofFor(gateway, buyer, ID, CITY);
    const [earned, unpaid] = [await income(), await counted('refused')];
    // The verification does not count any more, so the payment is simulated before it is sent.
    const refused = await bringAndEmpty(proof, SIMULATION_FRESH_MS);
    assert.ok(!refused.bytes.includes('sold'), 'the answer stays with the gateway');
    assert.ok(owed(refused).names, 'the 402 names the answer that waits');
    assert.equal(await income(), earned);
    assert.equal(await receiptsOf(refused.requestId), 0);
    assert.ok(await isUnpaid(proof), 'it is on the list of unpaid work');
    assert.equal(await counted('refused'), unpaid + 1);
    assert.ok(gateway.logLines.some((line) => line.includes('is not paid') && line.includes(payIdOf(proof))));

    const stranger = await buyWith(found(proof));
    if (stranger.status === 402) assert.equal(owed(stranger).names, false, 'without the secret nothing is named');

    await chain.mint(buyer.address, PRICE_UNITS);
    const bought = await buyAnew(refused);
    assert.deepEqual([bought.status, bought.bytes.toString()], [200, '{"sold":true}']);
    assert.equal((await income()) - earned, PRICE_UNITS);
    assert.equal(backend.requests.length, 1, 'the backend was called once in all');
    await receiptWhen(gateway, bought.requestId, true);
  });

  it('the payer empties its wallet right before the block: no answer until the chain shows what became of it', async () => {
    const proof = await proofFor(gateway, buyer, ID, CITY);
    const earned = await income();
    const { details, retryable } = failure(await bringAndEmpty(proof, 0), 502, 'PAYMENT_SETTLEMENT_FAILED');
    assert.deepEqual([details.settlementUncertain, retryable], [true, true]);
    assert.equal(await income(), earned);
    aheadMs += WINDOW_MS;
    await chain.request('evm_increaseTime', [WINDOW_MS / 1_000]);
    await chain.request('evm_mine', []);
    const refused = await eventually(async () => {
      const answered = await buyWith(proof);
      assert.ok(!answered.bytes.includes('sold'));
      return answered.status === 402 ? answered : undefined;
    }, 'the payment to be refused');
    assert.ok(owed(refused).names, 'the 402 names the answer that waits');
    assert.ok(await isUnpaid(proof));
    assert.deepEqual([await income(), backend.requests.length], [earned, 1]);
  });

  /** Sends the call, leaves when the backend has it, and lets the backend answer. */
  const leave = async (proof: string): Promise<void> => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { arrived } = heldUntil(released);
    const leaving = new AbortController();
    const call = fetch(`${gateway.url}/api/resources/${ID}/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'payment-signature': proof },
      body: JSON.stringify(CITY),
      signal: leaving.signal,
    }).then(read, () => undefined);
    await arrived;
    leaving.abort();
    await call;
    await seenHangUp(gateway.url);
    release();
    await eventually(async () => {
      const record = await gateway.store.ledger.read(payIdOf(proof));
      return record?.state === 'worked' && record.leaseUntil === 0 ? record : undefined;
    }, 'the answer to be kept');
  };

  it('the client leaves during the work: nothing is paid, and the same proof buys the answer that was kept', async () => {
    const proof = await proofFor(gateway, buyer, ID, CITY);
    const [funds, earned] = [await buyer.balance(), await income()];
    await leave(proof);
    assert.deepEqual([await buyer.balance(), await income()], [funds, earned]);
    const bought = await buyWith(proof);
    assert.deepEqual([bought.status, bought.bytes.toString()], [200, '{"sold":true}']);
    assert.equal((await income()) - earned, PRICE_UNITS);
    assert.deepEqual(
      backend.requests.map(({ idempotencyKey }) => idempotencyKey),
      [backendIdempotencyKey(payIdOf(proof))],
    );
    const receipt = await receiptWhen(gateway, bought.requestId, true);
    assert.equal(receipt.payment?.replayKey, payIdOf(proof));
    replayed(await buyWith(found(proof)), 'delivered');
  });
});
