import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it, mock } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { encodeFunctionData } from 'viem';
import { SIMULATION_FRESH_MS } from '../../src/payments/x402/local/lane.ts';
import { TOKEN_ABI } from '../../tools/local-world/contracts.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import type { ConfigObject } from '../support/config.ts';
import { answerBytes, answerJson } from '../support/http-server.ts';
import { receiptWhen } from '../support/records.ts';
import type { Route } from '../support/sample-backend.ts';
import { AFTER, SEALING } from '../support/settled-after.ts';
import { openTestbed, proofFor, type Quote, type Testbed } from '../support/testbed.ts';
import { type Brought, bring, failure, read } from './bring.ts';
import { AWAY, HONEST, type PricedBackend, RESOURCES, startPricedBackend } from './priced-by-input.ts';
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

/** A gateway whose backend quotes, and the backend. */
async function openQuoted(overrides: ConfigObject): Promise<{ testbed: Testbed; backend: PricedBackend }> {
  const backend = await startPricedBackend();
  const testbed = await openTestbed(async () => ({ backendUrl: backend.url, overrides }));
  return { testbed, backend };
}

const sizeOf = (size: number) => ({ size });
const busy = async (answer: Response): Promise<void> => {
  const { details } = failure(await read(answer), 503, 'GATEWAY_BUSY');
  assert.deepEqual([details, answer.headers.get('payment-required')], [undefined, null]);
};
/** The amount of a 402 in base units. */
const amountOf = ({ status, bytes }: Brought): unknown => {
  assert.equal(status, 402, bytes.toString());
  return (JSON.parse(bytes.toString()) as Quote['body']).payment.accepts[0]?.['amount'];
};
const envelopeOf = ({ bytes }: Brought) => (JSON.parse(bytes.toString()) as Quote['body']).payment.envelope;

describe('a quote', () => {
  let testbed: Testbed;
  let backend: PricedBackend;
  let buyer: Buyer;
  let aheadMs = 0;
  before(async () => {
    const now = Date.now.bind(Date);
    mock.method(Date, 'now', () => now() + aheadMs);
    const plenty = { perNetwork: 1_000, perResource: 1_000, all: 1_000 };
    const later = {
      ...RESOURCES['custom'],
      ...AFTER,
      pricing: { ...(RESOURCES['custom']?.['pricing'] as object), settle: 'after' },
    };
    const { backend: operation } = RESOURCES['custom'] as { readonly backend: object };
    ({ testbed, backend } = await openQuoted({
      ...{ limits: { unpaidWork: plenty }, storage: { sealing: SEALING } },
      resources: {
        ...RESOURCES,
        later: { ...later, expose: ['http'], backend: { ...operation, path: '/later', safeUnpaid: true } },
      },
    }));
  });
  after(async () => {
    await testbed?.close();
    await backend?.stop();
    mock.restoreAll();
  });
  beforeEach(async () => {
    aheadMs = 0;
    buyer = await createBuyer(testbed.chain);
    backend.forget();
    backend.quoting(HONEST);
  });
  const proofOf = (size: number, id = 'custom'): Promise<string> => proofFor(testbed.gateway, buyer, id, sizeOf(size));
  const bringFor = (proof: string, size: number, key?: string): Promise<Brought> =>
    bring(testbed.gateway, 'custom', sizeOf(size), { proof, ...(key === undefined ? {} : { key }) });
  const takes = async (units: bigint, run: () => Promise<unknown>): Promise<void> => {
    const [funds, income] = [await buyer.balance(), await testbed.income()];
    await run();
    assert.deepEqual([funds - (await buyer.balance()), (await testbed.income()) - income], [units, units]);
  };
  /** A proof for a 402 that stays valid when that ends. */
  const longProof = async (size: number): Promise<string> => {
    const { body } = await testbed.quote('custom', sizeOf(size));
    const envelope = structuredClone(body.payment.envelope) as { accepts: { maxTimeoutSeconds: number }[] };
    for (const accepts of envelope.accepts) accepts.maxTimeoutSeconds = LONG_SECONDS;
    const proof = decode(await buyer.pay(envelope));
    proof.accepted['maxTimeoutSeconds'] = 120;
    return encode(proof);
  };

  const LIES: Readonly<Record<string, Answering>> = {
    'below min': priced('0.009999'),
    'above max': priced('2.000001'),
    'of nothing': priced('0'),
    negative: priced('-1'),
    'that is a number': priced(0.5),
    'that is NaN': priced('NaN'),
    'with an exponent': priced('1e0'),
    'finer than the token': priced('0.1000001'),
    'in a list': text('[{"amount":"0.5"}]'),
    'of a prototype': text('{"__proto__":{"amount":"0.5"}}'),
    'that is a bare text': text('"0.5"'),
    'without an amount': text('{"price":"0.5"}'),
    'that is no JSON': text('{"amount":"0.5"'),
    'in two documents': text('{"amount":"0.5"}{"amount":"0.5"}'),
    'of nothing at all': text(''),
    'longer than is read': text(`{"amount":"0.5","pad":"${'x'.repeat(4_096)}"}`),
    'behind a redirect': (_, response) => void response.writeHead(302, { location: '/price2' }).end(),
    'with status 404': (_, response) => answerJson(response, 404, { amount: '0.5' }),
    'with status 402': (_, response) => answerJson(response, 402, { amount: '0.5' }),
    'with status 503': (_, response) => answerJson(response, 503, { amount: '0.5' }),
    'with status 204': (_, response) => void response.writeHead(204).end(),
    'that breaks off': (_, response) => void response.socket?.destroy(),
  };
  it('that is none is 503 and no offer: nothing is guessed, and the log has the fault', async () => {
    const { gateway } = testbed;
    for (const [what, answer] of Object.entries(LIES)) {
      backend.quoting(answer);
      const asked = await gateway.invoke('custom', sizeOf(50));
      assert.equal(asked.status, 503, what);
      await busy(asked);
    }
    assert.equal(backend.quoted().length, Object.keys(LIES).length, 'each is asked once');
    const faults = gateway.logLines.filter((line) => line.includes('no price for an input'));
    assert.equal(faults.length, Object.keys(LIES).length);
    backend.quoting(priced('0.5'));
    assert.equal(amountOf(await read(await gateway.invoke('custom', sizeOf(50)))), '500000');
    assert.equal(amountOf(await read(await gateway.invoke('render', { quality: 'high' }))), '50000');
  });

  it('that does not come within two seconds is 503, whether the server is silent or slow', async () => {
    const began = performance.now();
    const trickle: Answering = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"amount":');
      const timer = setInterval(() => response.write(' '), 100);
      response.on('close', () => clearInterval(timer));
    };
    const answers = [() => undefined, trickle] as readonly Answering[];
    backend.quoting((request, response, state) =>
      answers[request.body.toString() === '{"size":1}' ? 0 : 1]?.(request, response, state),
    );
    await Promise.all(
      [1, 2].map(async (size) => {
        await busy(await testbed.gateway.invoke('custom', sizeOf(size)));
        const took = performance.now() - began;
        assert.ok(took > 1_500 && took < 4_000, `${took} ms`);
      }),
    );
    // Other sales go on while a quote server is silent.
    assert.equal(
      (
        await bring(
          testbed.gateway,
          'render',
          { quality: 'low' },
          { proof: await proofFor(testbed.gateway, buyer, 'render', { quality: 'low' }) },
        )
      ).status,
      200,
    );
  });

  it('asks with the input alone, and holds for its buyer whatever is quoted next', async () => {
    const proof = await proofOf(50);
    backend.quoting(priced('2'));
    await takes(500_000n, async () => assert.equal((await bringFor(proof, 50)).status, 200));
    assert.deepEqual(backend.quoted(), ['{"size":50}']);
    assert.equal(backend.headersOf('/price')?.['content-type'], 'application/json');
    assert.equal(backend.headersOf('/price')?.['payment-signature'], undefined);
  });

  it('that is answered twice differently: without the token of its 402 a proof gets the present one', async () => {
    const proof = found(await proofOf(50));
    backend.quoting(priced('0.51'));
    await takes(0n, async () => assert.equal(amountOf(await bringFor(proof, 50)), '510000'));
    backend.quoting(HONEST);
    await takes(500_000n, async () => assert.equal((await bringFor(proof, 50)).status, 200));
  });

  it('is for its input alone: with the token another input is asked for anew', async () => {
    const proof = await proofOf(1);
    await takes(0n, async () => {
      assert.equal(amountOf(await bringFor(proof, 200)), '2000000');
      assert.equal(amountOf(await bring(testbed.gateway, 'later', sizeOf(1), { proof })), '10000');
      backend.quoting(AWAY);
      failure(await bringFor(proof, 200), 503, 'GATEWAY_BUSY');
    });
    assert.deepEqual(backend.delivered(), []);
    await takes(10_000n, async () => assert.equal((await bringFor(proof, 1)).status, 200));
  });

  it('ends with its 402: a proof that is still valid gets the present one', async () => {
    const [first, second] = [await longProof(50), await longProof(50)];
    aheadMs = WINDOW_MS;
    backend.quoting(priced('0.75'));
    await takes(0n, async () => assert.equal(amountOf(await bringFor(first, 50)), '750000'));
    backend.quoting(AWAY);
    await takes(0n, async () => void failure(await bringFor(second, 50), 503, 'GATEWAY_BUSY'));
    assert.deepEqual(backend.delivered(), []);
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
      await takes(750_000n, async () =>
        assert.equal((await bringFor(await buyer.pay(envelopeOf(refused)), 50)).status, 200),
      );
    }
    backend.quoting(AWAY);
    failure(await bringFor(encode(bad), 50), 503, 'GATEWAY_BUSY');
  });

  it('that was bought is collected while the quote server is away, by token and by key, in its time and after it', async () => {
    const { gateway } = testbed;
    for (const [key, shown] of [
      [undefined, (proof: string) => proof],
      ['a key of the buyer', (proof: string) => proof],
      ['another key', (proof: string) => found(proof)],
    ] as const) {
      backend.quoting(HONEST);
      const proof = shown(await longProof(50));
      const bought = await bringFor(proof, 50, key);
      assert.equal(bought.status, 200, bought.bytes.toString());
      await receiptWhen(gateway, bought.requestId, true);
      backend.quoting(AWAY);
      await takes(0n, async () => {
        for (const ahead of key === undefined ? [0, 30_000] : [0, WINDOW_MS]) {
          aheadMs = ahead;
          const again = await bringFor(proof, 50, key);
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
    const { gateway, chain } = testbed;
    const proof = await proofOf(150, 'later');
    await chain.fundGas(buyer.address);
    await chain.request('anvil_impersonateAccount', [buyer.address]);
    backend.working(async () => {
      const args = [`0x${'12'.repeat(20)}`, await buyer.balance()] as const;
      await chain.send(
        buyer.address,
        chain.token.address,
        encodeFunctionData({ abi: TOKEN_ABI, functionName: 'transfer', args }),
      );
      // The verification does not count any more, so the payment is simulated before it is sent.
      await delay(SIMULATION_FRESH_MS);
    });
    const refused = await bring(gateway, 'later', sizeOf(150), { proof });
    backend.working(async () => undefined);
    assert.equal(amountOf(refused), '1500000');
    const changed = decode(proof);
    changed.accepted['amount'] = '10000';
    for (const asked of [proof, encode(changed)]) {
      const again = await bring(gateway, 'later', sizeOf(150), { proof: asked });
      assert.equal(amountOf(again), '1500000');
      backend.quoting(AWAY);
      failure(await bring(gateway, 'later', sizeOf(150), { proof: asked }), 503, 'GATEWAY_BUSY');
      backend.quoting(HONEST);
    }
    await chain.mint(buyer.address, 1_500_000n);
    backend.forget();
    await takes(1_500_000n, async () => {
      const next = await buyer.pay(envelopeOf(refused));
      assert.equal((await bring(gateway, 'later', sizeOf(150), { proof: next })).status, 200);
    });
    assert.deepEqual(backend.delivered(), [], 'the answer was kept');
  });
});

describe('the budget of quotes', () => {
  let testbed: Testbed;
  let backend: PricedBackend;
  before(async () => {
    ({ testbed, backend } = await openQuoted({
      ...{ limits: { unpaidWork: { perNetwork: 3 } }, server: { trustProxy: 1 } },
      resources: RESOURCES,
    }));
  });
  after(async () => {
    await testbed?.close();
    await backend?.stop();
  });

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
    assert.equal((await ask(3)).status, 402);
    assert.equal((await ask(5)).status, 402);
    await busy(await ask(6));
    assert.equal(backend.quoted().length, 6);
  });
});
