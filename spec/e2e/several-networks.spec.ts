import assert from 'node:assert/strict';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { Role, type SendMessageRequest, TaskState } from '@a2a-js/sdk';
import { ClientFactory } from '@a2a-js/sdk/client';
import { wrapAxiosWithPayment } from '@x402/axios';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import type { PaymentPayload, PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import {
  decodeSignedOffers,
  extractOffersFromPaymentRequired,
  findAcceptsObjectFromSignedOffer,
  verifyOfferSignatureJWS,
} from '@x402/extensions/offer-receipt';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import axios from 'axios';
import type { Purchase } from '../../src/mandates/ap2/purchase.ts';
import { createMint } from '../support/ap2/mint.ts';
import { CLIENT_MODES } from '../support/mcp-clients.ts';
import { buyTool, receiptOf } from '../support/mcp-payer.ts';
import { quoteOf } from '../support/testbed.ts';
import { ask } from './ask.ts';
import { now, trusting } from './mandate-seller.ts';
import { type FarBuyer, moves, OFFERS, openTwoChains, PRICING, priceOf, type TwoChains } from './two-chains.ts';

const CITY = { city: 'Berlin' };
const REPORT = { ...CITY, currency: 'EUR', price: '12.50', volume: 340 };
const RESOURCE = 'market_report';

const ends = new AsyncDisposableStack();
const mint = createMint();
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const key = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
const { protocols: _protocols, ...mandates } = trusting(mint, ['echo']);
const SETTINGS = { ...mandates, signing: { key, offers: true } };
let stand: TwoChains;
let buyer: FarBuyer;
before(async () => {
  // Three signed offers need more than the usual room in a head.
  stand = await openTwoChains(ends, { overrides: { ...SETTINGS, server: { maxHeadBytes: 8_192 } } });
  buyer = await stand.buyer();
});
after(() => ends.disposeAsync());

/** The asset and the network of an offer. */
const isOffer = (at: number) => (one: { readonly network: string; readonly asset: string }) =>
  one.network === OFFERS[at]?.[0] && one.asset === stand.places[at]?.chain.token.address;

/** A client that pays one offer alone, by its own means. */
const WAYS: Readonly<Record<string, (at: number) => x402Client>> = {
  'a policy': (at) => buyer.client().registerPolicy((_version, offers) => offers.filter(isOffer(at))),
  'a selector': (at) => buyer.client((_version, offers) => offers.find(isOffer(at)) ?? assert.fail()),
  'one network that it knows': (at) => {
    const [network] = OFFERS[at] ?? assert.fail();
    const client = new x402Client().register(network, new ExactEvmScheme(buyer.account)).setSpendControls(false);
    // Of two tokens on one network the default is the first.
    return at < 2 ? client : client.registerPolicy((_version, offers) => offers.filter(isOffer(at)));
  },
};

/** Buys a report over one channel, and gives the network that the receipt names. */
const CHANNELS: Readonly<Record<string, (client: x402Client) => Promise<unknown>>> = {
  async '@x402/fetch'(client) {
    const answer = await wrapFetchWithPayment(fetch, client)(`${stand.gateway.url}/api/resources/${RESOURCE}/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(CITY),
    });
    assert.deepEqual(await answer.json(), REPORT);
    return networkIn(answer.headers.get('payment-response'));
  },
  async '@x402/axios'(client) {
    const shop = wrapAxiosWithPayment(axios.create({ baseURL: stand.gateway.url }), client as never);
    const answer = await shop.post(`/api/resources/${RESOURCE}/invoke`, CITY);
    assert.deepEqual(answer.data, REPORT);
    return networkIn(answer.headers['payment-response']);
  },
  ...Object.fromEntries(
    Object.entries(CLIENT_MODES).map(([name, { connect }]) => [
      `${name} of MCP`,
      async (client: x402Client) => {
        const mcp = await connect(`${stand.gateway.url}/mcp`);
        const { answer } = await buyTool(mcp, client, { name: RESOURCE, arguments: CITY });
        await mcp.close();
        assert.deepEqual(answer.structuredContent, REPORT);
        return receiptOf(answer)?.network;
      },
    ]),
  ),
  async 'the client of A2A'(client) {
    const { gateway } = stand;
    const card = await (await new ClientFactory().createFromUrl(gateway.url)).getAgentCard();
    const supportedInterfaces = card.supportedInterfaces.map((one) => ({ ...one, url: `${gateway.url}/a2a` }));
    const a2a = await new ClientFactory().createFromAgentCard({ ...card, supportedInterfaces });
    const send = async (metadata?: Record<string, unknown>) => {
      const task = await a2a.sendMessage(messageWith(metadata));
      assert.ok('artifacts' in task);
      return { ...task, x402: task.status?.message?.metadata ?? {} };
    };
    const asked = await send();
    const payload = await client.createPaymentPayload(asked.x402['x402.payment.required'] as PaymentRequired);
    const paid = await send({ 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': payload });
    assert.equal(paid.status?.state, TaskState.TASK_STATE_COMPLETED);
    const content = paid.artifacts[0]?.parts[0]?.content;
    assert.deepEqual(content?.$case === 'data' && content.value, REPORT);
    return (paid.x402['x402.payment.receipts'] as readonly { readonly network: string }[])[0]?.network;
  },
};

function messageWith(metadata: Record<string, unknown> | undefined): SendMessageRequest {
  const value = { resource: RESOURCE, input: CITY };
  const content = { $case: 'data', value } as const;
  const part = { content, mediaType: 'application/json', filename: '', metadata: undefined };
  const unused = { contextId: '', taskId: '', extensions: [], referenceTaskIds: [] };
  const message = { messageId: randomUUID(), role: Role.ROLE_USER, parts: [part], ...unused, metadata };
  return { tenant: '', message, configuration: undefined, metadata: undefined };
}

function networkIn(header: unknown): unknown {
  return (JSON.parse(Buffer.from(String(header), 'base64').toString()) as { readonly network: string }).network;
}

interface Asked {
  readonly payment: {
    readonly network: string;
    readonly asset: string;
    readonly amount: string;
    readonly currency: string;
    readonly destination: string;
    readonly accepts: readonly PaymentRequirements[];
    readonly envelope: PaymentRequired;
  };
  readonly authorization?: { readonly required: readonly [Demand] };
}

/** A checkout, and its alternatives. */
interface Demand {
  readonly checkoutJwt: string;
  readonly alternatives?: readonly { readonly network: string; readonly asset: string; readonly checkoutJwt: string }[];
}

async function asked(resource = RESOURCE, input: object = CITY): Promise<Asked> {
  return (await quoteOf(stand.gateway, resource, input)).body as unknown as Asked;
}

describe('a purchase on one of several networks', () => {
  for (const [channel, buy] of Object.entries(CHANNELS))
    for (const [at, [way, clientOf]] of [0, 1, 2].map((at) => [at, Object.entries(WAYS)[at] ?? assert.fail()] as const))
      it(`by ${channel}, which picks offer ${at} by ${way}: delivered, and exactly its price moves there alone`, async () => {
        await moves(stand, buyer, priceOf(at), async () => assert.equal(await buy(clientOf(at)), OFFERS[at]?.[0]));
      });
});

describe('the 402 of several networks', () => {
  it('has the offers in the order of the merchant, and shows the first', async () => {
    const { payment } = await asked();
    const { network, asset, amount, currency, destination, accepts, envelope } = payment;
    assert.deepEqual(
      accepts.map((offer) => [offer.network, offer.extra['name'], BigInt(offer.amount)]),
      OFFERS,
    );
    assert.deepEqual(
      accepts.map(({ asset, payTo }) => [asset, payTo]),
      stand.places.map(({ chain, payTo }) => [chain.token.address, payTo]),
    );
    assert.deepEqual(envelope.accepts, accepts);
    assert.deepEqual(
      [network, asset, amount, currency, destination],
      [accepts[0]?.network, accepts[0]?.asset, '0.01', 'TUSD', accepts[0]?.payTo],
    );
  });

  it('has an offer in each asset of the price alone', async () => {
    const { payment } = await asked('greeting', {});
    assert.deepEqual(
      payment.accepts.map(({ network, extra }) => [network, extra['name']]),
      OFFERS.slice(0, 2).map(([network, name]) => [network, name]),
    );
  });

  it('signs each offer under its index', async () => {
    const { envelope } = (await asked()).payment;
    const keys = await (await fetch(`${stand.gateway.url}/.well-known/jwks.json`)).json();
    const [, publicJwk] = (keys as { readonly keys: readonly object[] }).keys;
    const signed = extractOffersFromPaymentRequired(envelope);
    assert.deepEqual(
      signed.map(({ acceptIndex }) => acceptIndex),
      [0, 1, 2],
    );
    for (const [at, decoded] of decodeSignedOffers(signed).entries()) {
      const offer = await verifyOfferSignatureJWS(decoded.signedOffer as never, publicJwk as never);
      assert.equal(findAcceptsObjectFromSignedOffer(decoded, envelope.accepts), envelope.accepts[at]);
      const { network, asset, payTo, amount } = envelope.accepts[at] ?? assert.fail();
      assert.deepEqual([offer.network, offer.asset, offer.payTo, offer.amount], [network, asset, payTo, amount]);
    }
  });

  it('is followed by the discovery document', async () => {
    const answer = await fetch(`${stand.gateway.url}/.well-known/agent-commerce`);
    const { payments } = (await answer.json()) as {
      readonly payments: { readonly x402: Offered & { readonly alternatives: readonly Offered[] } };
    };
    const { x402 } = payments;
    assert.deepEqual(
      [x402, ...x402.alternatives].map(({ network, assetName, payTo }) => [network, assetName, payTo]),
      OFFERS.map(([network, name], at) => [network, name, stand.places[at]?.payTo]),
    );
  });
});

interface Offered {
  readonly network: string;
  readonly assetName: string;
  readonly payTo: string;
}

describe('a mandate and several networks', () => {
  const INPUT = { said: 'this' };
  /** A mandate for offer `at`, made of its checkout. */
  const mandateFor = ({ authorization, payment }: Asked, at: number): string => {
    const [demand] = authorization?.required ?? assert.fail();
    const { network, asset, payTo } = payment.accepts[at] ?? assert.fail();
    const other = demand.alternatives?.find((one) => one.network === network && one.asset === asset);
    const { checkoutJwt } = at === 0 ? demand : (other ?? assert.fail(`no checkout for offer ${at}`));
    const purchase: Purchase = {
      ...{ resourceId: 'echo', title: 'Echo', input: INPUT, price: { amount: '0.001', currency: 'TUSD' } },
      payment: { method: 'x402', network, asset, payTo, payer: buyer.account.address.toLowerCase(), nonce: undefined },
    };
    const profile = stand.gateway.config.authorization.ap2?.profile ?? assert.fail();
    return mint.autonomous({ now: now(), profile, checkoutJwt, purchase, payment: true }).header;
  };
  const bringBoth = async (mandated: number, paid: number) => {
    const quote = await asked('echo', INPUT);
    const mandate = mandateFor(quote, mandated);
    const proof = encodePaymentSignatureHeader(
      await (WAYS['a policy'] ?? assert.fail())(paid).createPaymentPayload(quote.payment.envelope),
    );
    const headers = { 'payment-signature': proof, 'agent-authorization': mandate };
    const answer = await stand.gateway.invoke('echo', INPUT, headers);
    return { status: answer.status, text: await answer.text() };
  };

  it('is accepted for either offer with a payment of that offer', async () => {
    for (const at of [0, 1])
      await moves(stand, buyer, [at === 0 ? 1_000n : 0n, at === 1 ? 1_000n : 0n, 0n], async () => {
        const { status, text } = await bringBoth(at, at);
        assert.deepEqual([status, text], [200, JSON.stringify(INPUT)]);
      });
  });

  it('is refused for one offer with a payment of the other, and nothing moves', async () => {
    for (const at of [0, 1])
      await moves(stand, buyer, [0n, 0n, 0n], async () => {
        const { status, text } = await bringBoth(at, 1 - at);
        assert.equal(status, 403, text);
      });
  });
});

// Last, because it reloads the configuration.
describe('the head of a 402 with three offers', () => {
  const ORIGIN = 'https://console.example';
  const MOST_BYTES = 4_096;
  // The usual room, and all that a 402 may carry.
  before(() => {
    const tags = ['markets', 'reports', 'prices'];
    const bazaar = { example: CITY };
    stand.gateway.reload({
      server: { allowedOrigins: [ORIGIN] },
      merchant: { iconUrl: `https://shop.example/${'i'.repeat(60)}` },
      resources: { [RESOURCE]: { pricing: PRICING, tags, bazaar, description: 'x'.repeat(480) } },
    });
  });
  const head = async (headers: Readonly<Record<string, string>>): Promise<number> => {
    const path = `/api/resources/${RESOURCE}/invoke`;
    const sent = { 'content-type': 'application/json', origin: ORIGIN, 'x-request-id': 'r'.repeat(64), ...headers };
    const answer = await ask(stand.gateway.url, { path, headers: sent, body: JSON.stringify(CITY) });
    assert.equal(answer.status, 402, answer.text);
    assert.notEqual(answer.headers['payment-required'], undefined);
    const fields = Object.entries(answer.headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
    return `HTTP/1.1 402 Payment Required\r\n${fields.join('')}\r\n`.length;
  };

  it('stays below the bound of proxies, and keeps the offers', async () => {
    const proof = encodePaymentSignatureHeader({
      ...(await buyer.client().createPaymentPayload((await asked()).payment.envelope)),
      resource: { url: 'https://other.example/' },
    } as PaymentPayload);
    for (const headers of [{}, { accept: 'text/html' }, { 'payment-signature': proof }]) {
      const bytes = await head(headers);
      assert.ok(bytes <= MOST_BYTES, `${JSON.stringify(Object.keys(headers))}: ${bytes}`);
    }
    const { accepts, extensions = {} } = (await asked()).payment.envelope;
    assert.equal(accepts.length, OFFERS.length);
    assert.deepEqual(Object.keys(extensions), ['payment-identifier', 'bazaar', 'agent-commerce-buyer']);
  });
});
