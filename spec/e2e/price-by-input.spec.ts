import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { amountRange } from '../../tools/mandate/maker/constraints.ts';
import { withReference } from '../support/ap2/wishes.ts';
import { CURRENCY } from '../support/config.ts';
import { fetchPaying, jsonPost, OFFICIAL_BUYERS } from '../support/official-buyers.ts';
import { type Brought, failure, read } from './bring.ts';
import { CHANNELS as MANDATE_CHANNELS } from './mandate-channels.ts';
import { type MandateSeller, openMandateSeller } from './mandate-seller.ts';
import {
  AWAY,
  asked,
  BY_QUOTE,
  BY_TEXT,
  openPriced,
  type PricedBackend,
  type PricedTestbed,
  RESOURCES,
  startPricedBackend,
} from './priced-by-input.ts';
import { decode, encode, found } from './proofs.ts';

const PROTOCOLS = { mcp: { enabled: true }, a2a: { enabled: true } };
/** Inputs and their prices in base units of a token with six decimals. */
const PRICES: readonly (readonly [id: string, input: Record<string, unknown>, units: bigint])[] = [
  ['translate', { text: 'a' }, 1_000n],
  ['translate', { text: '😀'.repeat(123) }, 12_300n],
  ['translate', { text: 'a'.repeat(501) }, 50_000n],
  ['measured', { count: 33.3 }, 33_300n],
  ['measured', { count: 1.0000001 }, 1_001n],
  ['measured', { count: -7 }, 1_000n],
  ['scan', { pages: 10 }, 10_000n],
  ['scan', { pages: 11 }, 50_000n],
  ['render', { quality: 'low' }, 10_000n],
  ['render', { quality: 'high' }, 50_000n],
  ['custom', { size: 37 }, 370_000n],
];
const LOWEST = { translate: '1000', scan: '10000', render: '10000', custom: '10000' };

/** How official clients buy: over each channel, and in place. */
const BUYERS: typeof OFFICIAL_BUYERS = {
  ...OFFICIAL_BUYERS,
  '@x402/fetch in place': (wallet, { url, resource, input }) =>
    resource === 'scan'
      ? fetchPaying(wallet, `${url}/scan?pages=${input['pages']}`, {})
      : fetchPaying(wallet, `${url}/${resource}`, jsonPost(input)),
};

describe('a price that follows the input', () => {
  let testbed: PricedTestbed;
  before(async () => {
    testbed = await openPriced({ protocols: PROTOCOLS, resources: RESOURCES });
  });
  after(() => testbed?.close());
  beforeEach(() => testbed.backend.forget());
  const send = async (path: string, init?: RequestInit): Promise<Brought> =>
    read(await fetch(testbed.gateway.url + path, init));
  for (const [client, buy] of Object.entries(BUYERS))
    it(`is charged exactly by ${client}`, async () => {
      const { backend, buyer, gateway, takes } = testbed;
      for (const [id, input, units] of PRICES) {
        backend.forget();
        const expected = id === 'scan' ? { url: `/scan?pages=${input['pages']}` } : input;
        await takes(units, async () => {
          const { goods } = await buy(buyer.client, { url: gateway.url, resource: id, input });
          assert.deepEqual(goods, expected);
        });
        assert.equal(backend.delivered().length, 1);
        assert.deepEqual(backend.quoted(), id === 'custom' ? [JSON.stringify(input)] : []);
      }
    });

  it('without an input is the lowest, and the 402 says so', async () => {
    for (const [id, lowest] of Object.entries(LOWEST))
      for (const [path, init] of [
        [`/api/resources/${id}/invoke`, { method: 'POST' }],
        [`/api/resources/${id}/invoke`, {}],
        [`/${id}`, id === 'scan' ? {} : { method: 'POST' }],
      ] as const) {
        const { amount, message } = asked(await send(path, init));
        assert.equal(amount, lowest, path);
        assert.match(message, /at least .*This is the lowest price: each input has its own/);
      }
    assert.deepEqual(testbed.backend.requests, []);
    const { message } = asked(await send('/api/resources/render/invoke', jsonPost({ quality: 'high' })));
    assert.match(message, /^Payment of 0\.05 TUSD is required for Rendering/);
    const { headers, ...sent } = jsonPost({ quality: 'high' });
    const page = await send('/api/resources/render/invoke', { ...sent, headers: { ...headers, accept: 'text/html' } });
    assert.match(page.bytes.toString(), /<dt>Price<\/dt><dd>0\.05 TUSD<\/dd>/);
  });

  it('above the last step is an error of the input that names the member, on every channel', async () => {
    const input = { pages: 101 };
    const errors = [{ path: '$.pages', keyword: 'price', message: 'must be at most 100' }];
    for (const call of Object.values(MANDATE_CHANNELS)) {
      const { code, body } = await call(testbed.gateway, { resourceId: 'scan', input });
      assert.deepEqual([code, body.details], ['INPUT_INVALID', { errors }]);
    }
    assert.deepEqual(failure(await send('/scan?pages=101'), 400, 'INPUT_INVALID').details, { errors });
  });

  it('binds the proof to its input: one for a short text buys no long one, and still buys its own', async () => {
    const [short, long] = [{ text: 'a'.repeat(20) }, { text: 'a'.repeat(21) }];
    const proof = await testbed.proof('translate', short);
    const changed = decode(proof);
    changed.accepted['amount'] = '2100';
    for (const shown of [proof, found(proof), encode(changed)])
      await testbed.brings(shown, 'translate', long, '402 at 2100');
    await testbed.brings(proof, 'translate', short, 2_000n);
  });

  it('is not that of the 402 without an input, whose token buys nothing dearer', async () => {
    for (const [id, lowest] of Object.entries(LOWEST)) {
      const { envelope } = asked(await send(`/api/resources/${id}/invoke`, { method: 'POST' }));
      const proof = await testbed.buyer.pay(envelope);
      const [, input, units] = PRICES.find(([one, , price]) => one === id && price > BigInt(lowest)) ?? assert.fail();
      for (const shown of [proof, found(proof)]) await testbed.brings(shown, id, input, `402 at ${units}`);
    }
  });

  it('is made of numbers alone where a number counts', async () => {
    const invoke = (body: string) => send('/api/resources/measured/invoke', { ...jsonPost(undefined), body });
    for (const count of ['"7"', '"NaN"', '"1e3"', 'NaN', 'Infinity', 'null', 'true', '[7]', '{"n":7}', '1e999', '0x7'])
      assert.equal((await invoke(`{"count":${count}}`)).status, 400, count);
    for (const body of ['{"count":1,"count":900}', '{"Count":7}', '{"count":9007199254740993}', '{"count":-1e300}'])
      assert.equal((await invoke(body)).status, 400, body);
    for (const [count, units] of [
      ['1e2', '100000'],
      ['5e-324', '1000'],
      ['-0', '1000'],
      ['-9007199254740991', '1000'],
      ['9007199254740991', '1000000'],
      ['1.0009999999999999', '1001'],
    ] as const)
      assert.equal(asked(await invoke(`{"count":${count}}`)).amount, units, count);
    for (const query of ['pages=1e1', 'pages=10.0', 'pages=1&pages=100', 'pages=NaN', 'pages=-'])
      assert.equal((await send(`/scan?${query}`)).status, 400, query);
  });

  it('is that of the input as the backend gets it, without the digits that a number loses', async () => {
    const body = '{"count":10.00000000000000000001}';
    for (const path of ['/api/resources/measured/invoke', '/measured']) {
      const { envelope, amount } = asked(await send(path, { ...jsonPost(undefined), body }));
      const headers = { 'content-type': 'application/json', 'payment-signature': await testbed.buyer.pay(envelope) };
      const { status, bytes } = await send(path, { method: 'POST', headers, body });
      assert.deepEqual([amount, status, bytes.toString()], ['10000', 200, '{"count":10}']);
    }
  });
});

describe('a price that a reload changes', () => {
  let testbed: PricedTestbed;
  const priced = (pricing: object) => ({
    resources: {
      translate: { ...RESOURCES['translate'], pricing: { type: 'fixed', currency: CURRENCY, ...pricing } },
    },
  });
  const [CHEAP, DEAR, FIXED] = [priced(BY_TEXT), priced({ ...BY_TEXT, amount: '0.0002' }), priced({ amount: '0.004' })];
  const [short, long] = [{ text: 'a'.repeat(20) }, { text: 'a'.repeat(40) }];
  before(async () => {
    testbed = await openPriced(CHEAP);
    testbed.backend.quoting(AWAY);
  });
  after(() => testbed?.close());
  const proofFor = (input: object): Promise<string> => testbed.proof('translate', input);
  const brings = (proof: string, input: object, result: bigint | string): Promise<void> =>
    testbed.brings(proof, 'translate', input, result);

  for (const [what, next, forLong, forShort] of [
    ['another amount of the unit', DEAR, '402 at 8000', '402 at 4000'],
    ['a fixed price', FIXED, '402 at 4000', '402 at 4000'],
    ['a quote that does not come', priced(BY_QUOTE), '503 GATEWAY_BUSY', '503 GATEWAY_BUSY'],
  ] as const)
    it(`to ${what} is kept for the input that it was offered for, and for no other`, async () => {
      testbed.gateway.reload(CHEAP);
      const [proof, bare] = [await proofFor(short), found(await proofFor(short))];
      const unpriced = await fetch(`${testbed.gateway.url}/api/resources/translate/invoke`, { method: 'POST' });
      testbed.gateway.reload(next);
      await brings(proof, long, forLong);
      await brings(bare, short, forShort);
      await brings(await testbed.buyer.pay(asked(await read(unpriced)).envelope), long, forLong);
      await brings(proof, short, 2_000n);
    });

  it('from a fixed price is kept, for every input as it was offered', async () => {
    testbed.gateway.reload(FIXED);
    const [proof, bare] = [await proofFor(short), found(await proofFor(short))];
    const changed = decode(await proofFor(short));
    changed.accepted['amount'] = '3999';
    testbed.gateway.reload(DEAR);
    await brings(encode(changed), long, '402 at 8000');
    await brings(proof, short, 4_000n);
    await brings(bare, long, 4_000n);
  });
});

describe('a mandate for a price that follows the input', () => {
  let seller: MandateSeller;
  let backend: PricedBackend;
  const INPUT = { quality: 'high' };
  before(async () => {
    backend = await startPricedBackend();
    const render = { ...RESOURCES['render'], authorization: { required: ['ap2'] } };
    const parts = { backendUrl: backend.url, overrides: { resources: { render } } };
    seller = await openMandateSeller([], {}, parts);
  });
  after(async () => {
    await seller?.close();
    await backend?.stop();
  });

  for (const [channel, send] of Object.entries(MANDATE_CHANNELS))
    it(`is refused with a maximum below it, and accepted with one of it, over ${channel}`, async () => {
      const { gateway, buyer } = seller;
      const call = { resourceId: 'render', input: INPUT };
      const { body } = await send(gateway, call);
      const proof = await buyer.pay(body.payment?.envelope);
      const purchase = seller.purchaseOf('render', 'Rendering', INPUT, '0.05');
      const upTo = (units: number) =>
        seller.mandateFor(body, {
          ...{ purchase, payment: true },
          paymentConstraints: withReference(amountRange(CURRENCY, units)),
        }).header;
      const [income, funds] = [await seller.income(), await buyer.balance()];
      const refused = await send(gateway, { ...call, proof, mandate: upTo(49_999) });
      assert.deepEqual(
        [refused.code, refused.body.details?.['reason'], refused.body.details?.['constraint']],
        ['AUTHORIZATION_INVALID', 'constraint_violated', 'payment.amount_range'],
      );
      const low = { resourceId: 'render', input: { quality: 'low' } };
      const lower = { purchase: seller.purchaseOf('render', 'Rendering', low.input, '0.01'), payment: true };
      const ofLow = seller.mandateFor((await send(gateway, low)).body, lower);
      const other = await send(gateway, { ...call, proof, mandate: ofLow.header });
      assert.equal(other.code, 'AUTHORIZATION_INVALID', other.raw);
      assert.equal(await seller.income(), income);
      const bought = await send(gateway, { ...call, proof, mandate: upTo(50_000) });
      assert.equal(bought.code, undefined, bought.raw);
      assert.deepEqual([(await seller.income()) - income, funds - (await buyer.balance())], [50_000n, 50_000n]);
    });
});
