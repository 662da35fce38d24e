import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import {
  decodeSignedOffers,
  extractOffersFromPaymentRequired,
  findAcceptsObjectFromSignedOffer,
  verifyOfferSignatureJWS,
} from '@x402/extensions/offer-receipt';
import { x402Client } from '@x402/fetch';
import { createMint } from '../support/ap2/mint.ts';
import type { ConfigObject } from '../support/config.ts';
import { OFFICIAL_BUYERS } from '../support/official-buyers.ts';
import { ask } from './ask.ts';
import { trusting } from './mandate-seller.ts';
import { RESOURCES } from './priced-by-input.ts';
import { decode, encode } from './proofs.ts';
import {
  CITY,
  type FarBuyer,
  mandateFor,
  OFFERS,
  openTwoChains,
  PRICING,
  priceOf,
  RESOURCE,
  type TwoChains,
} from './two-chains.ts';

const REPORT = { ...CITY, currency: 'EUR', price: '12.50', volume: 340 };

const ends = new AsyncDisposableStack();
const mint = createMint();
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const key = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
const { resources, ...mandates } = trusting(mint, ['echo']);
const BY_TEXT = { ...RESOURCES['translate'], backend: { method: 'POST', path: '/echo' }, expose: ['http'] };
const SETTINGS = {
  ...{ ...mandates, signing: { key, offers: true } },
  resources: { ...(resources as ConfigObject), by_text: BY_TEXT },
};
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

describe('a purchase on one of several networks', () => {
  for (const [client, buy] of Object.entries(OFFICIAL_BUYERS))
    for (const [at, [way, clientOf]] of [0, 1, 2].map((at) => [at, Object.entries(WAYS)[at] ?? assert.fail()] as const))
      it(`by ${client}, which picks offer ${at} by ${way}: delivered, and exactly its price moves there alone`, async () => {
        const order = { url: stand.gateway.url, resource: RESOURCE, input: CITY };
        const bought = { goods: REPORT, network: OFFERS[at]?.[0] };
        await buyer.moves(priceOf(at), async () => assert.deepEqual(await buy(clientOf(at), order), bought));
      });
});

describe('the 402 of several networks', () => {
  it('has the offers in the order of the merchant, and shows the first', async () => {
    const { payment } = await stand.ask();
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

  it('has the price of its input in each asset of its currency, and buys no other input', async () => {
    const [short, long] = [{ text: 'a'.repeat(20) }, { text: 'a'.repeat(21) }];
    for (const [at, units] of [
      [2_000n, 0n, 0n],
      [0n, 2_000n, 0n],
    ].entries()) {
      const { payment } = await stand.ask('by_text', short);
      assert.deepEqual(
        payment.accepts.map(({ network, amount }) => [network, amount]),
        OFFERS.slice(0, 2).map(([network]) => [network, '2000']),
      );
      const headers = { 'payment-signature': await buyer.pay(payment.envelope, at) };
      await buyer.moves(units, async () => {
        assert.equal((await stand.gateway.invoke('by_text', long, headers)).status, 402);
        assert.equal((await stand.gateway.invoke('by_text', short, headers)).status, 200);
      });
    }
  });

  it('signs each offer under its index', async () => {
    const { envelope } = (await stand.ask()).payment;
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
});

describe('a mandate and several networks', () => {
  const INPUT = { said: 'this' };
  const bringBoth = async (mandated: number, paid: number) => {
    const quote = await stand.ask('echo', INPUT);
    const mandate = mandateFor({ ...stand, mint }, buyer, INPUT, quote, mandated);
    const proof = await buyer.pay(quote.payment.envelope, paid);
    const headers = { 'payment-signature': proof, 'agent-authorization': mandate };
    const answer = await stand.gateway.invoke('echo', INPUT, headers);
    return { status: answer.status, text: await answer.text() };
  };

  it('for one offer is refused with a payment of the other, and accepted with one of its own', async () => {
    for (const [at, units] of [
      [1_000n, 0n, 0n],
      [0n, 1_000n, 0n],
    ].entries())
      await buyer.moves(units, async () => {
        const refused = await bringBoth(at, 1 - at);
        assert.equal(refused.status, 403, refused.text);
        assert.deepEqual(await bringBoth(at, at), { status: 200, text: JSON.stringify(INPUT) });
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
    const paid = decode(await buyer.pay((await stand.ask()).payment.envelope, 0));
    const proof = encode({ ...paid, resource: { url: 'https://other.example/' } });
    for (const headers of [{}, { accept: 'text/html' }, { 'payment-signature': proof }]) {
      const bytes = await head(headers);
      assert.ok(bytes <= MOST_BYTES, `${JSON.stringify(Object.keys(headers))}: ${bytes}`);
    }
    const { accepts, extensions = {} } = (await stand.ask()).payment.envelope;
    assert.equal(accepts.length, OFFERS.length);
    assert.deepEqual(Object.keys(extensions), ['payment-identifier', 'bazaar', 'agent-commerce-buyer']);
  });
});
