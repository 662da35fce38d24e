import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it, mock } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { encodeFunctionData } from 'viem';
import { SIMULATION_FRESH_MS } from '../../src/payments/x402/local/lane.ts';
import { TOKEN_ABI } from '../../tools/local-world/contracts.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { answerBytes, answerJson } from '../support/http-server.ts';
import { receiptWhen } from '../support/records.ts';
import type { Route } from '../support/sample-backend.ts';
import { SEALING } from '../support/settled-after.ts';
import { proofFor } from '../support/testbed.ts';
import { type Brought, bring, failure, read } from './bring.ts';
import {
  AWAY,
  asked,
  HONEST,
  openPriced,
  type PricedBackend,
  type PricedTestbed,
  RESOURCES,
} from './priced-by-input.ts';
import { decode, encode, found } from './proofs.ts';

type Answering = Route['answer'];

/** Longer than a 402 of this gateway lasts, and shorter than the longest window of a proof. */
const WINDOW_MS = 125_000;
/** The longest window that a proof may have, seconds. */
const LONG_SECONDS = 700;
const priced =
  (amount: unknown): Answering =>
  (_, response) =>
    answerJson(response, 200, { amount });
const text =
  (body: string): Answering =>
  (_, response) =>
    answerBytes(response, 200, 'application/json', Buffer.from(body));

const sizeOf = (size: number) => ({ size });
const busy = async (answer: Response): Promise<void> => {
  const { details } = failure(await read(answer), 503, 'GATEWAY_BUSY');
  assert.deepEqual([details, answer.headers.get('payment-required')], [undefined, null]);
};
const amountOf = (answer: Brought): unknown => asked(answer).amount;
const envelopeOf = (answer: Brought) => asked(answer).envelope;

describe('a quote', () => {
  let testbed: PricedTestbed;
  let backend: PricedBackend;
  let buyer: Buyer;
  let aheadMs = 0;
  before(async () => {
    const now = Date.now.bind(Date);
    mock.method(Date, 'now', () => now() + aheadMs);
    const plenty = { perNetwork: 1_000, perResource: 1_000, all: 1_000 };
    const { pricing, backend: operation, ...custom } = RESOURCES['custom'] as Readonly<Record<string, object>>;
    const later = {
      ...{ ...custom, pricing: { ...pricing, settle: 'after' }, expose: ['http'] },
      backend: { ...operation, path: '/later', safeUnpaid: true },
    };
    testbed = await openPriced({
      ...{ limits: { unpaidWork: plenty }, storage: { sealing: SEALING } },
      resources: { ...RESOURCES, later, translate: { ...RESOURCES['translate'], pricing } },
    });
    backend = testbed.backend;
  });
  after(async () => {
    await testbed?.close();
    mock.restoreAll();
  });
  beforeEach(async () => {
    aheadMs = 0;
    buyer = await createBuyer(testbed.chain);
    backend.forget();
    backend.quoting(HONEST);
  });
  const proofOf = (size: number, id = 'custom'): Promise<string> => proofFor(testbed.gateway, buyer, id, sizeOf(size));
  const bringFor = (proof: string, size: number, id = 'custom'): Promise<Brought> =>
    bring(testbed.gateway, id, sizeOf(size), { proof });
  const brings = (proof: string, size: number, result: bigint | string, id = 'custom'): Promise<void> =>
    testbed.brings(proof, id, sizeOf(size), result, buyer);
  /** A proof for a 402 that stays valid when that ends. */
  const longProof = async (size: number): Promise<string> => {
    const { body } = await testbed.quote('custom', sizeOf(size));
    const envelope = structuredClone(body.payment.envelope) as { accepts: { maxTimeoutSeconds: number }[] };
    for (const accepts of envelope.accepts) accepts.maxTimeoutSeconds = LONG_SECONDS;
    const proof = decode(await buyer.pay(envelope));
    proof.accepted['maxTimeoutSeconds'] = 120;
    return encode(proof);
  };

  const LIES: readonly Answering[] = [
    ...['0.009999', '2.000001', '1e0', 0.5].map(priced),
    ...['', '[{"amount":"0.5"}]', '{"amount":"0.5"', '{"amount":"0.5"}{"amount":"0.5"}'].map(text),
    text(`{"amount":"0.5","pad":"${'x'.repeat(4_096)}"}`),
    ...[402, 404, 503].map(
      (status): Answering =>
        (_, response) =>
          answerJson(response, status, { amount: '0.5' }),
    ),
    (_, response) => void response.socket?.destroy(),
  ];
  it('that is none is 503 and no offer: nothing is guessed, and the log has the fault', async () => {
    const { gateway } = testbed;
    for (const lie of LIES) {
      backend.quoting(lie);
      await busy(await gateway.invoke('custom', sizeOf(50)));
    }
    assert.equal(backend.requests.length, LIES.length, 'each is asked once');
    assert.equal(gateway.logLines.filter((line) => line.includes('no price for an input')).length, LIES.length);
    backend.quoting(priced('0.5'));
    assert.equal(amountOf(await read(await gateway.invoke('custom', sizeOf(50)))), '500000');
  });

  it('that does not come within two seconds is 503, whether the server is silent or slow; other sales go on', async () => {
    const { gateway } = testbed;
    const trickle: Answering = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"amount":');
      const timer = setInterval(() => response.write(' '), 100);
      response.on('close', () => clearInterval(timer));
    };
    backend.quoting((...exchange) => (exchange[0].body.toString() === '{"size":1}' ? undefined : trickle(...exchange)));
    const began = performance.now();
    const late = [1, 2].map(async (size) => {
      await busy(await gateway.invoke('custom', sizeOf(size)));
      const took = performance.now() - began;
      assert.ok(took > 1_500 && took < 6_000, `${took} ms`);
    });
    const low = { quality: 'low' };
    const proof = await proofFor(gateway, buyer, 'render', low);
    await testbed.brings(proof, 'render', low, 10_000n, buyer);
    await Promise.all(late);
  });

  it('asks with the input alone, and holds for its buyer and its input whatever is quoted next', async () => {
    const proof = await proofOf(50);
    assert.deepEqual(backend.quoted(), ['{"size":50}']);
    assert.equal(backend.headersOf('/price')?.['content-type'], 'application/json');
    backend.quoting(priced('2'));
    await brings(found(proof), 50, '402 at 2000000');
    await brings(proof, 51, '402 at 2000000');
    assert.equal(backend.headersOf('/price')?.['payment-signature'], undefined);
    backend.quoting(AWAY);
    await brings(proof, 51, '503 GATEWAY_BUSY');
    await brings(proof, 50, 500_000n);
  });

  it('holds for a large input too, and for the money first where that is an order', async () => {
    const [text, other] = ['a', 'b'].map((letter) => ({ text: letter.repeat(20_000) })) as [object, object];
    backend.quoting(priced('0.5'));
    const proof = await proofFor(testbed.gateway, buyer, 'translate', text);
    const upfront = decode(await proofOf(50, 'later'));
    upfront.accepted.extra['paymentFlow'] = 'upfront';
    backend.quoting(priced('2'));
    await testbed.brings(proof, 'translate', other, '402 at 2000000', buyer);
    await testbed.brings(proof, 'translate', text, 500_000n, buyer);
    await brings(encode(upfront), 50, 500_000n, 'later');
  });

  it('ends with its 402: a proof that is still valid gets the present one', async () => {
    const [first, second] = [await longProof(50), await longProof(50)];
    aheadMs = WINDOW_MS;
    backend.quoting(priced('0.75'));
    await brings(first, 50, '402 at 750000');
    backend.quoting(AWAY);
    await brings(second, 50, '503 GATEWAY_BUSY');
  });

  it('is not prolonged by a refused proof: the 402 after it has the present one', async () => {
    const bad = decode(await proofOf(50));
    bad.payload.signature = `0x${'11'.repeat(64)}1b`;
    const poor = await createBuyer(testbed.chain, 0n);
    const unfunded = await proofFor(testbed.gateway, poor, 'custom', sizeOf(50));
    backend.quoting(priced('0.75'));
    for (const proof of [encode(bad), unfunded]) {
      const refused = await bringFor(proof, 50);
      assert.equal(amountOf(refused), '750000');
      await brings(await buyer.pay(envelopeOf(refused)), 50, 750_000n);
    }
    backend.quoting(AWAY);
    // The refusal is told all the same; the lowest price buys no input.
    await brings(encode(bad), 50, '402 at 10000');
  });

  it('that was bought is collected while the quote server is away, by token and by key, in its time and after it', async () => {
    const { gateway } = testbed;
    const ways: readonly (readonly [named: { readonly key?: string }, laterMs: number, bare?: true])[] = [
      [{}, 30_000],
      [{ key: 'a key of the buyer' }, WINDOW_MS],
      [{ key: 'another key' }, WINDOW_MS, true],
    ];
    for (const [named, laterMs, bare] of ways) {
      backend.quoting(HONEST);
      const proof = await longProof(50);
      const sent = { ...named, proof: bare ? found(proof) : proof };
      const bought = await bring(gateway, 'custom', sizeOf(50), sent);
      assert.equal(bought.status, 200, bought.bytes.toString());
      await receiptWhen(gateway, bought.requestId, true);
      backend.quoting(AWAY);
      await testbed.takes(0n, async () => {
        for (const ms of [0, laterMs]) {
          aheadMs = ms;
          const again = await bring(gateway, 'custom', sizeOf(50), sent);
          assert.deepEqual(
            [again.status, again.bytes, again.headers.get('idempotent-replayed')],
            [200, bought.bytes, 'true'],
          );
        }
      });
      aheadMs = 0;
    }
    assert.equal(backend.delivered().length, 3);
  });

  it('is owed in full by a payment that came to nothing: its 402 has no lower price', async () => {
    // The answer waits when its buyer has spent the money elsewhere.
    const { chain } = testbed;
    const proof = await proofOf(150, 'later');
    await chain.fundGas(buyer.address);
    await chain.request('anvil_impersonateAccount', [buyer.address]);
    backend.working(async () => {
      const args = [`0x${'12'.repeat(20)}`, await buyer.balance()] as const;
      const data = encodeFunctionData({ abi: TOKEN_ABI, functionName: 'transfer', args });
      await chain.send(buyer.address, chain.token.address, data);
      // The verification does not count any more, so the payment is simulated before it is sent.
      await delay(SIMULATION_FRESH_MS);
    });
    const refused = await bringFor(proof, 150, 'later');
    backend.working(async () => undefined);
    assert.equal(amountOf(refused), '1500000');
    const changed = decode(proof);
    changed.accepted['amount'] = '10000';
    for (const shown of [proof, encode(changed)]) {
      assert.equal(amountOf(await bringFor(shown, 150, 'later')), '1500000');
      backend.quoting(AWAY);
      const lowest = await buyer.pay(envelopeOf(await bringFor(shown, 150, 'later')));
      backend.quoting(HONEST);
      await brings(lowest, 150, '402 at 1500000', 'later');
    }
    await chain.mint(buyer.address, 1_500_000n);
    backend.forget();
    await brings(await buyer.pay(envelopeOf(refused)), 150, 1_500_000n, 'later');
    assert.deepEqual(backend.delivered(), [], 'the answer was kept');
  });
});

describe('the budget of quotes', () => {
  let testbed: PricedTestbed;
  let backend: PricedBackend;
  before(async () => {
    testbed = await openPriced({
      ...{ limits: { unpaidWork: { perNetwork: 3 } }, server: { trustProxy: 1 } },
      resources: RESOURCES,
    });
    backend = testbed.backend;
  });
  after(() => testbed?.close());

  it('is spent by unpaid quotes of one network, which then ask the backend no more, and given back by a purchase', async () => {
    const { gateway, buyer } = testbed;
    const from = (network: string) => ({ 'x-forwarded-for': `${network}.0.0.7` });
    const ask = (size: number, network = '10') => gateway.invoke('custom', sizeOf(size), from(network));
    const quotes: Brought[] = [];
    // The second quote for an input is work as the first one is.
    for (const size of [1, 2, 2]) quotes.push(await read(await ask(size)));
    for (const size of [4, 2, 1]) await busy(await ask(size));
    assert.equal(backend.quoted().length, 3);
    assert.equal((await ask(4, '11')).status, 402, 'another network has a budget of its own');
    assert.equal((await gateway.invoke('render', { quality: 'low' }, from('10'))).status, 402, 'no quote is needed');
    const proof = await buyer.pay(envelopeOf(quotes[1] ?? assert.fail()));
    const headers = { ...from('10'), 'payment-signature': proof };
    assert.equal((await gateway.invoke('custom', sizeOf(2), headers)).status, 200, 'a quote that was made is bought');
    assert.equal(backend.quoted().length, 4);
    assert.equal((await ask(5)).status, 402);
    await busy(await ask(6));
    assert.equal(backend.quoted().length, 5);
  });
});
