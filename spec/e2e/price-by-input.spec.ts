import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { Role } from '@a2a-js/sdk';
import { ClientFactory } from '@a2a-js/sdk/client';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { type PaymentRequired, x402Client } from '@x402/fetch';
import { encodeDeployData, getContractAddress } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { connectChain } from '../../tools/local-world/chain.ts';
import { CONTRACTS } from '../../tools/local-world/contracts.ts';
import { amountRange } from '../../tools/mandate/maker/constraints.ts';
import { withReference } from '../support/ap2/wishes.ts';
import { createBuyer } from '../support/buyer.ts';
import { CURRENCY } from '../support/config.ts';
import { CLIENT_MODES } from '../support/mcp-clients.ts';
import { buyTool } from '../support/mcp-payer.ts';
import { receiptWhen } from '../support/records.ts';
import { openTestbed, type Quote, type Testbed } from '../support/testbed.ts';
import { type Brought, bring, failure } from './bring.ts';
import { CHANNELS as MANDATE_CHANNELS } from './mandate-channels.ts';
import { type MandateSeller, openMandateSeller } from './mandate-seller.ts';
import {
  AWAY,
  BY_QUOTE,
  BY_TEXT,
  HONEST,
  type PricedBackend,
  RESOURCES,
  startPricedBackend,
} from './priced-by-input.ts';
import { decode, encode, found } from './proofs.ts';

const PROTOCOLS = { mcp: { enabled: true }, a2a: { enabled: true } };
/** Inputs and their prices in base units of a token with six decimals. */
const PRICES: readonly (readonly [id: string, input: Readonly<Record<string, unknown>>, units: bigint])[] = [
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
const LOWEST: Readonly<Record<string, string>> = {
  translate: '1000',
  scan: '10000',
  render: '10000',
  custom: '10000',
};

/** The address in place of a call. */
function inPlace(id: string, input: Readonly<Record<string, unknown>>): readonly [target: string, init: RequestInit] {
  if (id === 'scan') return [`/scan?pages=${input['pages']}`, {}];
  return [`/${id}`, post(input)];
}

function post(input: unknown): RequestInit {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(input) };
}

const official = async (answer: Response): Promise<unknown> => {
  assert.equal(answer.status, 200);
  return answer.json();
};

/** How official clients buy over each channel; the answer. */
const CHANNELS: Readonly<
  Record<string, (testbed: Testbed, id: string, input: Readonly<Record<string, unknown>>) => Promise<unknown>>
> = {
  http: async ({ gateway, buyer }, id, input) =>
    official(await buyer.fetch(`${gateway.url}/api/resources/${id}/invoke`, post(input))),
  origin: async ({ gateway, buyer }, id, input) => {
    const [target, init] = inPlace(id, input);
    return official(await buyer.fetch(gateway.url + target, init));
  },
  mcp: async ({ gateway, buyer }, id, input) => {
    const client = await CLIENT_MODES['the 2.x client']?.connect(`${gateway.url}/mcp`);
    assert.ok(client !== undefined);
    const { answer } = await buyTool(client, buyer.client, { name: id, arguments: input });
    await client.close();
    assert.notEqual(answer.isError, true);
    return answer.structuredContent;
  },
  a2a: async ({ gateway, buyer }, id, input) => {
    const card = await (await new ClientFactory().createFromUrl(gateway.url)).getAgentCard();
    const supportedInterfaces = card.supportedInterfaces.map((at) => ({ ...at, url: `${gateway.url}/a2a` }));
    const client = await new ClientFactory().createFromAgentCard({ ...card, supportedInterfaces });
    const send = async (metadata?: Record<string, unknown>) => {
      const content = { $case: 'data', value: { resource: id, input } } as const;
      const parts = [{ content, mediaType: 'application/json', filename: '', metadata: undefined }];
      const unused = { contextId: '', taskId: '', extensions: [], referenceTaskIds: [] };
      const message = { messageId: randomUUID(), role: Role.ROLE_USER, parts, ...unused, metadata };
      const task = await client.sendMessage({ tenant: '', message, configuration: undefined, metadata: undefined });
      return 'artifacts' in task ? task : assert.fail('the answer is a task');
    };
    const asked = (await send()).status?.message?.metadata?.['x402.payment.required'] as PaymentRequired;
    const bought = await send({ 'x402.payment.payload': await buyer.client.createPaymentPayload(asked) });
    const content = bought.artifacts[0]?.parts[0]?.content;
    return content?.$case === 'data' ? content.value : assert.fail(JSON.stringify(bought.status));
  },
};

/** A 402: its amount in base units, and the document to sign. */
function asked({ status, bytes }: Pick<Brought, 'status' | 'bytes'>) {
  assert.equal(status, 402, bytes.toString());
  const { payment, message } = JSON.parse(bytes.toString()) as Quote['body'] & { readonly message: string };
  return { amount: payment.accepts[0]?.['amount'], envelope: payment.envelope, message };
}

describe('a price that follows the input', () => {
  let testbed: Testbed;
  let backend: PricedBackend;
  before(async () => {
    backend = await startPricedBackend();
    testbed = await openTestbed(async () => ({
      backendUrl: backend.url,
      overrides: { protocols: PROTOCOLS, resources: RESOURCES },
    }));
  });
  after(async () => {
    await testbed?.close();
    await backend?.stop();
  });
  /** What the payee gets and the buyer loses while something runs. */
  const moved = async (run: () => Promise<unknown>): Promise<bigint> => {
    const [income, funds] = [await testbed.income(), await testbed.buyer.balance()];
    await run();
    const earned = (await testbed.income()) - income;
    assert.equal(funds - (await testbed.buyer.balance()), earned);
    return earned;
  };
  const ask = async (path: string, init?: RequestInit) => {
    const answer = await fetch(testbed.gateway.url + path, init);
    return asked({ status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) });
  };
  /** A proof that is shown with another input: a 402 at that input's own price, and nothing taken. */
  const refusedFor = async (proof: string, id: string, input: unknown, amount: string): Promise<void> => {
    const income = await moved(async () => {
      const answer = await bring(testbed.gateway, id, input, { proof });
      assert.equal(asked(answer).amount, amount);
      assert.equal(answer.payment, undefined);
    });
    assert.deepEqual([income, backend.delivered()], [0n, []]);
  };
  const boughtFor = async (proof: string, id: string, input: unknown): Promise<bigint> =>
    moved(async () => {
      const { status, bytes, requestId } = await bring(testbed.gateway, id, input, { proof });
      assert.equal(status, 200, bytes.toString());
      await receiptWhen(testbed.gateway, requestId, true);
    });

  for (const [channel, buy] of Object.entries(CHANNELS))
    it(`is charged exactly over ${channel}, by the official client`, async () => {
      for (const [id, input, units] of PRICES) {
        backend.forget();
        const income = await moved(async () => {
          const expected = id === 'scan' ? { url: `/scan?pages=${input['pages']}` } : input;
          assert.deepEqual(await buy(testbed, id, input), expected);
        });
        assert.deepEqual([id, income, backend.delivered().length], [id, units, 1]);
        assert.deepEqual(backend.quoted(), id === 'custom' ? [JSON.stringify(input)] : []);
      }
    });

  it('without an input is the lowest, and the 402 says so', async () => {
    backend.forget();
    const { url } = testbed.gateway;
    for (const [id, lowest] of Object.entries(LOWEST))
      for (const [path, init] of [
        [`/api/resources/${id}/invoke`, { method: 'POST' }],
        [`/api/resources/${id}/invoke`, {}],
        [`/${id}`, id === 'scan' ? {} : { method: 'POST' }],
      ] as const) {
        const { amount, message } = await ask(path, init);
        assert.deepEqual([path, amount], [path, lowest], url);
        assert.match(message, /at least .*This is the lowest price: it follows the input, so call with one/);
      }
    assert.deepEqual(backend.requests, []);
    const { message } = await ask('/api/resources/render/invoke', post({ quality: 'high' }));
    assert.match(message, /^Payment of 0\.05 TUSD is required for Rendering/);
  });

  it('above the last step is an error of the input that names the member, on every channel', async () => {
    const input = { pages: 101 };
    const answer = await testbed.gateway.invoke('scan', input);
    const { details } = failure({ ...answerOf(answer), bytes: Buffer.from(await answer.text()) }, 400, 'INPUT_INVALID');
    assert.deepEqual(details, { errors: [{ path: '$.pages', keyword: 'price', message: 'must be at most 100' }] });
    assert.equal((await fetch(`${testbed.gateway.url}/scan?pages=101`)).status, 400);
    for (const channel of ['mcp', 'a2a'] as const) {
      const { code, body } = await MANDATE_CHANNELS[channel](testbed.gateway, { resourceId: 'scan', input });
      assert.deepEqual([code, body.details], ['INPUT_INVALID', details]);
    }
  });

  it('binds the proof to its input: one for a short text buys no long one, and still buys its own', async () => {
    backend.forget();
    const [short, long] = [{ text: 'a'.repeat(20) }, { text: 'a'.repeat(21) }];
    const proof = await testbed.proof('translate', short);
    await refusedFor(proof, 'translate', long, '2100');
    await refusedFor(found(proof), 'translate', long, '2100');
    assert.equal(await boughtFor(proof, 'translate', short), 2_000n);
  });

  it('is not that of the 402 without an input, whose token buys nothing dearer', async () => {
    backend.forget();
    for (const [id, lowest] of Object.entries(LOWEST)) {
      const { envelope } = await ask(`/api/resources/${id}/invoke`, { method: 'POST' });
      const proof = await testbed.buyer.pay(envelope);
      const [, input, units] = PRICES.find(([one, , price]) => one === id && price > BigInt(lowest)) ?? assert.fail();
      await refusedFor(proof, id, input, `${units}`);
      await refusedFor(found(proof), id, input, `${units}`);
    }
  });

  it('is that of another input only where a proof with a changed amount would be: nowhere', async () => {
    backend.forget();
    const proof = decode(await testbed.proof('render', { quality: 'high' }));
    proof.accepted['amount'] = '10000';
    await refusedFor(encode(proof), 'render', { quality: 'high' }, '50000');
    const cheap = decode(await testbed.proof('render', { quality: 'low' }));
    cheap.accepted['amount'] = '50000';
    await refusedFor(encode(cheap), 'render', { quality: 'high' }, '50000');
  });

  it('takes numbers alone where a number counts, and reads each once', async () => {
    const invoke = (body: string) =>
      fetch(`${testbed.gateway.url}/api/resources/measured/invoke`, { ...post(undefined), body });
    for (const count of ['"7"', '"NaN"', '"1e3"', 'NaN', 'Infinity', 'null', 'true', '[7]', '{"n":7}', '1e999', '0x7'])
      assert.equal((await invoke(`{"count":${count}}`)).status, 400, count);
    for (const body of ['{"count":1,"count":900}', '{"Count":7}', '{"count":9007199254740993}', '{"count":-1e300}'])
      assert.equal((await invoke(body)).status, 400, body);
    for (const [count, units] of [
      ['1e2', '100000'],
      ['0.1e1', '1000'],
      ['5e-324', '1000'],
      ['-0', '1000'],
      ['-9007199254740991', '1000'],
      ['9007199254740991', '1000000'],
      ['1.0009999999999999', '1001'],
    ] as const) {
      const answer = await invoke(`{"count":${count}}`);
      assert.equal(asked({ status: answer.status, bytes: Buffer.from(await answer.text()) }).amount, units, count);
    }
    for (const query of ['pages=1e1', 'pages=10.0', 'pages=%31%30%31', 'pages=1&pages=100', 'pages=NaN', 'pages=-'])
      assert.equal((await fetch(`${testbed.gateway.url}/scan?${query}`)).status, 400, query);
  });

  it('is that of the very bytes that the backend gets: digits that a number loses are lost before it is priced', async () => {
    backend.forget();
    const body = '{"count":10.00000000000000000001}';
    const { envelope } = await ask('/api/resources/measured/invoke', { ...post(undefined), body });
    const headers = { 'content-type': 'application/json', 'payment-signature': await testbed.buyer.pay(envelope) };
    const answer = await fetch(`${testbed.gateway.url}/measured`, { method: 'POST', headers, body });
    assert.equal(answer.status, 200);
    assert.deepEqual([await answer.text(), backend.delivered()], ['{"count":10}', ['{"count":10}']]);
  });
});

function answerOf({ status, headers }: Response): Omit<Brought, 'bytes'> {
  return { status, headers, payment: undefined, requestId: headers.get('x-request-id') ?? '' };
}

describe('a price that a reload changes', () => {
  let testbed: Testbed;
  let backend: PricedBackend;
  const priced = (pricing: object) => ({
    protocols: PROTOCOLS,
    resources: {
      ...RESOURCES,
      translate: { ...RESOURCES['translate'], pricing: { type: 'fixed', currency: CURRENCY, ...pricing } },
    },
  });
  const [CHEAP, DEAR, FIXED] = [priced(BY_TEXT), priced({ ...BY_TEXT, amount: '0.0002' }), priced({ amount: '0.004' })];
  const QUOTED = priced(BY_QUOTE);
  const [short, long] = [{ text: 'a'.repeat(20) }, { text: 'a'.repeat(40) }];
  before(async () => {
    backend = await startPricedBackend();
    backend.quoting(AWAY);
    testbed = await openTestbed(async () => ({ backendUrl: backend.url, overrides: CHEAP }));
  });
  after(async () => {
    await testbed?.close();
    await backend?.stop();
  });
  const pricedAt = async (proof: string, input: unknown): Promise<unknown> => {
    const income = await testbed.income();
    const { status, bytes } = await bring(testbed.gateway, 'translate', input, { proof });
    const earned = (await testbed.income()) - income;
    if (status === 200) return earned;
    assert.equal(earned, 0n);
    return status === 402 ? `402 at ${asked({ status, bytes }).amount}` : status;
  };
  const proofOf = (input: unknown): Promise<string> => testbed.proof('translate', input);
  const lowestProof = async (): Promise<string> => {
    const answer = await fetch(`${testbed.gateway.url}/api/resources/translate/invoke`, { method: 'POST' });
    return testbed.buyer.pay(((await answer.json()) as Quote['body']).payment.envelope);
  };

  for (const [what, next, own, other] of [
    ['another amount of the unit', DEAR, 2_000n, '402 at 8000'],
    ['a fixed price', FIXED, 2_000n, '402 at 4000'],
    ['a quote that does not come', QUOTED, 2_000n, 503],
  ] as const)
    it(`to ${what} is kept for the input that it was offered for, and for no other`, async () => {
      testbed.gateway.reload(CHEAP);
      const [first, second, third, bare, lowest] = [
        await proofOf(short),
        await proofOf(short),
        await proofOf(short),
        found(await proofOf(short)),
        await lowestProof(),
      ];
      testbed.gateway.reload(next);
      assert.equal(await pricedAt(first, short), own);
      assert.equal(await pricedAt(second, long), other);
      assert.equal(await pricedAt(second, short), own, 'a refused proof is as good as before');
      assert.equal(await pricedAt(lowest, long), other);
      // No token shows the input.
      assert.equal(await pricedAt(bare, short), next === DEAR ? '402 at 4000' : other);
      testbed.gateway.reload(CHEAP);
      assert.equal(await pricedAt(third, short), own);
    });

  it('from a fixed price is kept, as that was offered for every input', async () => {
    testbed.gateway.reload(FIXED);
    const [first, second] = [await proofOf(short), found(await proofOf(short))];
    testbed.gateway.reload(DEAR);
    assert.equal(await pricedAt(first, short), 4_000n);
    assert.equal(await pricedAt(second, long), 4_000n);
    const changed = decode(await proofOf(short));
    changed.accepted['amount'] = '3999';
    assert.equal(await pricedAt(encode(changed), long), '402 at 8000');
  });
});

describe('a price that follows the input in two tokens', () => {
  let testbed: Testbed;
  let backend: PricedBackend;
  let second: ReturnType<typeof connectChain>;
  before(async () => {
    backend = await startPricedBackend();
    testbed = await openTestbed(async (chain) => {
      const [owner, payTo, privateKey] = [
        privateKeyToAddress(generatePrivateKey()),
        privateKeyToAddress(generatePrivateKey()),
        generatePrivateKey(),
      ];
      await Promise.all([chain.fundGas(owner), chain.fundGas(privateKeyToAddress(privateKey))]);
      const { abi, bytecode } = CONTRACTS.contracts.Eip3009Token;
      await chain.request('anvil_impersonateAccount', [owner]);
      await chain.send(owner, undefined, encodeDeployData({ abi, bytecode, args: ['Other USD', '1'] }));
      const token = { ...chain.token, address: getContractAddress({ from: owner, nonce: 0n }) };
      second = connectChain(chain.rpcUrl, { ...token, name: 'Other USD', version: '1' });
      const entry = ({ address, name, version }: typeof token, key: string) => ({
        ...{ network: `eip155:${chain.chainId}`, asset: address, assetName: name, assetVersion: version, payTo },
        ...{ assetDecimals: 6, currency: CURRENCY, maxTimeoutSeconds: 120, payToExclusive: true, rpcUrl: chain.rpcUrl },
        facilitator: { mode: 'local', privateKey: key },
      });
      const x402 = [entry(chain.token, chain.relayerKey), entry(second.token, privateKey)];
      return { backendUrl: backend.url, payTo, overrides: { payments: { x402 }, resources: RESOURCES } };
    });
  });
  after(async () => {
    await testbed?.close();
    await backend?.stop();
  });

  it('is the same in both, charged in the one that the client picks, and buys no other input', async () => {
    const { gateway } = testbed;
    const buyer = await createBuyer(second);
    const client = new x402Client((_version, accepts) => accepts[1] ?? assert.fail('one offer'));
    client.register('eip155:*', new ExactEvmScheme(buyer.account)).setSpendControls(false);
    const proofOf = async (id: string, input: unknown) => {
      const { body } = await testbed.quote(id, input);
      return encodePaymentSignatureHeader(await client.createPaymentPayload(body.payment.envelope as PaymentRequired));
    };
    for (const [id, cheap, dear, units] of [
      ['translate', { text: 'a'.repeat(20) }, { text: 'a'.repeat(21) }, 2_000n],
      ['custom', { size: 37 }, { size: 38 }, 370_000n],
    ] as const) {
      backend.forget();
      backend.quoting(HONEST);
      const funds = await buyer.balance();
      const proof = await proofOf(id, cheap);
      const quotes = backend.quoted().length;
      assert.equal((await bring(gateway, id, dear, { proof })).status, 402);
      assert.deepEqual([funds - (await buyer.balance()), backend.delivered()], [0n, []]);
      backend.quoting(AWAY);
      const { status, payment } = await bring(gateway, id, cheap, { proof });
      assert.deepEqual([status, funds - (await buyer.balance())], [200, units]);
      assert.equal(payment?.success, true);
      assert.equal(quotes, id === 'custom' ? 1 : 0);
    }
    assert.equal(await testbed.income(), 0n, 'nothing in the first token');
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
      const low = await send(gateway, { resourceId: 'render', input: { quality: 'low' } });
      const ofLow = seller.mandateFor(low.body, {
        purchase: seller.purchaseOf('render', 'Rendering', { quality: 'low' }, '0.01'),
        payment: true,
      });
      const other = await send(gateway, { ...call, proof, mandate: ofLow.header });
      assert.equal(other.code, 'AUTHORIZATION_INVALID', other.raw);
      assert.equal(await seller.income(), income);
      const bought = await send(gateway, { ...call, proof, mandate: upTo(50_000) });
      assert.equal(bought.code, undefined, bought.raw);
      assert.deepEqual([(await seller.income()) - income, funds - (await buyer.balance())], [50_000n, 50_000n]);
    });
});
