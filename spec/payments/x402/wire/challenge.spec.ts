import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http';
import { isPaymentRequiredV2, ResourceInfoSchema } from '@x402/core/schemas';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { appendPaymentIdentifierToExtensions } from '@x402/extensions/payment-identifier';
import { type PaymentRequired, x402Client } from '@x402/fetch';
import { hostKey } from '../../../../src/crypto/signing-key.ts';
import {
  challengeFor,
  inPlaceUrl,
  inPlaceUrls,
  type PricedResource,
  REFUSED_RESPONSE_BYTES,
  USUAL_ROOM,
} from '../../../../src/payments/x402/wire/challenge.ts';
import { compileOffers, type OfferSigner } from '../../../../src/payments/x402/wire/offers.ts';
import { signedOffers } from '../../../../src/payments/x402/wire/payment-response.ts';
import { decodeProof, encodeHeader, encodeProof } from '../../../../src/payments/x402/wire/proof.ts';
import type { Extension } from '../../../../src/payments/x402/wire/types.ts';
import { pem } from '../../../config/sections/ap2.ts';
import { tokensUnder } from '../../settlement/tokens.ts';
import { acceptsOf, freshAccount, freshAddress, offerFor, PRICE_UNITS, RESOURCE_URL, termsFor } from '../signing.ts';

const terms = termsFor();
const report: PricedResource = {
  id: 'report',
  name: 'Market "report"',
  description: 'Prices of one city — täglich',
  mimeType: 'text/csv',
};
const template = challengeFor(report, acceptsOf(terms), 'https://shop.example');
const EXPIRES = '2026-11-20T12:00:00.000Z';
const TOKEN = 'T0-_'.repeat(18);
/** What a field takes of a head, with name and end. */
const fieldOf = (header: string): number => 'payment-required: \r\n'.length + header.length;
const ROOM_OF_REFUSAL = USUAL_ROOM.plain - REFUSED_RESPONSE_BYTES;
const facts = (requestId: string, token = TOKEN) => ({ requestId, expiresAt: EXPIRES, token });
const REFUSAL = {
  code: 'PAYMENT_INVALID',
  reason: 'insufficient_funds',
  message: 'The payment proof was refused.',
  retryable: false,
} as const;

describe('the challenge of a paid resource', () => {
  it('is the payment-required envelope of the specification', () => {
    const { body, header } = template.fresh(facts('req_1'));
    const required = decodePaymentRequiredHeader(header);
    assert.deepEqual(JSON.parse(body), {
      status: 'payment-required',
      code: 'PAYMENT_REQUIRED',
      requestId: 'req_1',
      resourceId: 'report',
      message: 'Payment of 0.01 TUSD is required for Market "report" (report).',
      payment: {
        provider: 'x402',
        version: '2',
        amount: '0.01',
        currency: 'TUSD',
        destination: terms.payTo,
        network: terms.network,
        asset: terms.asset,
        expiresAt: EXPIRES,
        accepts: [offerFor(terms)],
        envelope: required,
      },
    });
    assert.deepEqual(required.accepts, [offerFor(terms)]);
    assert.deepEqual(required.resource, {
      url: RESOURCE_URL,
      description: report.description,
      mimeType: report.mimeType,
    });
    assert.equal(required.error, undefined);
  });

  it('declares in the document that settlement comes first, and that a payment may be named', () => {
    const { document } = template.fresh(facts('req_1'));
    const { accepts, extensions } = JSON.parse(document);
    assert.deepEqual(accepts[0].extra, {
      name: terms.assetName,
      version: terms.assetVersion,
      assetTransferMethod: 'eip3009',
      paymentFlow: 'upfront',
    });
    assert.equal(extensions['payment-identifier'].info.required, false);
  });

  it('has the reason of a refusal in body and document', () => {
    const { body, header, document } = template.refused(facts('req_2'), REFUSAL);
    const envelope = JSON.parse(body);
    assert.deepEqual(envelope.error, REFUSAL);
    assert.equal(envelope.payment.envelope.error, 'insufficient_funds');
    assert.equal(decodePaymentRequiredHeader(header).error, 'insufficient_funds');
    assert.deepEqual(JSON.parse(document), envelope.payment.envelope);
    const fresh = JSON.parse(template.fresh(facts('req_2')).body);
    delete envelope.error;
    delete envelope.payment.envelope.error;
    assert.deepEqual(envelope, fresh);
  });

  it('carries the token in every form, of at most 200 bytes with its extension', () => {
    const info = { token: TOKEN };
    const forms = [template.fresh(facts('req_1')), template.refused(facts('req_1'), REFUSAL)];
    for (const { body, header, document, terse } of forms) {
      const documents = [document, terse.document, terse.tokenOnly].map((text) => JSON.parse(text));
      documents.push(JSON.parse(body).payment.envelope, decodePaymentRequiredHeader(header));
      for (const { extensions } of documents) assert.deepEqual(extensions['agent-commerce-buyer'].info, info);
      const bare = JSON.parse(document);
      delete bare.extensions['agent-commerce-buyer'];
      assert.ok(Buffer.byteLength(document) - Buffer.byteLength(JSON.stringify(bare)) <= 200);
    }
  });

  it('splices the token at any position and behind any description', () => {
    for (let length = 0; length < 12; length += 1)
      for (const letter of ['x', 'ü', '€', '😀', '_']) {
        const described = { ...report, description: letter.repeat(letter === '_' ? 100 + length : length) };
        const { header, document } = challengeFor(described, acceptsOf(terms), 'https://shop.example').fresh(
          facts('req_1'),
        );
        assert.equal(Buffer.from(header, 'base64').toString(), document);
        assert.equal(Buffer.from(document).toString('base64'), header, 'in canonical spelling');
        assert.equal(JSON.parse(document).extensions['agent-commerce-buyer'].info.token, TOKEN);
        assert.equal(JSON.parse(document).resource.description, described.description);
      }
  });

  it('stays well-formed whatever the request id holds', () => {
    const hostile = 'x","code":"FREE"\\';
    assert.equal(JSON.parse(template.fresh(facts(hostile)).body).requestId, hostile);
  });

  it('keeps it within its room with the longest reason and the name of an answer that waits, at any length', () => {
    const named = `${TOKEN}.${'n'.repeat(43)}`;
    const longest = { ...REFUSAL, reason: 'r'.repeat(64) };
    const filled: number[] = [];
    for (const url of [undefined, 'https://shop.example/reports/Berlin'])
      for (let length = 500; length < 1_800; length += 1) {
        const described = { ...report, description: 'x'.repeat(length) };
        const made = challengeFor(described, acceptsOf(terms), 'https://shop.example');
        const { header } = made.refused({ ...facts('req_3', named), url }, longest);
        filled.push(fieldOf(header));
      }
    const most = Math.max(...filled);
    assert.ok(most <= ROOM_OF_REFUSAL, `${most}`);
    assert.ok(most > ROOM_OF_REFUSAL - 12, `${most}: no more room is kept than that takes`);
  });

  it('is paid by the official client with a proof that we can read', async () => {
    const client = new x402Client().register('eip155:*', new ExactEvmScheme(freshAccount()));
    client.setSpendControls(false);
    const required = decodePaymentRequiredHeader(template.fresh(facts('req_4')).header) as PaymentRequired;
    const payload = await client.createPaymentPayload(required);
    const decoded = decodeProof(encodeProof(JSON.parse(JSON.stringify(payload))));
    assert.ok(decoded.kind === 'decoded');
    assert.equal(decoded.payload.accepted.amount, PRICE_UNITS.toString());
    assert.equal(decoded.buyerToken, TOKEN, 'the client echoes it');
    assert.ok(!JSON.stringify(decoded.payload).includes(TOKEN), 'and the payload does not have it');
  });
});

describe('the terse terms of a challenge', () => {
  const guarded: PricedResource = { ...report, authorization: ['ap2'] };
  const challenges = [report, guarded].flatMap((resource) => {
    const made = challengeFor(resource, acceptsOf(terms), 'https://shop.example');
    return [made.fresh(facts('req_1')), made.refused(facts('req_1'), REFUSAL)];
  });

  it('are those of the whole document, without what only describes them', () => {
    for (const { document, terse, refusal } of challenges) {
      const whole = JSON.parse(document);
      const info = Object.entries(whole.extensions as Record<string, Extension>).map(([name, { info }]) => [
        name,
        info,
      ]);
      const error = refusal?.reason ?? 'Payment required';
      const { extensions, ...short } = JSON.parse(terse.document);
      assert.deepEqual(short, { x402Version: 2, error, resource: { url: RESOURCE_URL }, accepts: whole.accepts });
      assert.deepEqual(
        extensions,
        Object.fromEntries(info.map(([name, member]) => [name, { info: member, schema: {} }])),
      );
      const { 'agent-commerce-buyer': token } = extensions;
      assert.deepEqual(JSON.parse(terse.tokenOnly), { ...short, extensions: { 'agent-commerce-buyer': token } });
    }
  });

  it('are ASCII, for clients that encode them with btoa', () => {
    for (const { terse } of challenges) assert.equal(Buffer.byteLength(terse.document), terse.document.length);
  });

  it('are what official clients pay from, with a payment identifier where they have one', async () => {
    const client = new x402Client().register('eip155:*', new ExactEvmScheme(freshAccount()));
    client.setSpendControls(false);
    const id = 'order-0123456789abcdef';
    for (const { terse } of challenges)
      for (const text of [terse.document, terse.tokenOnly]) {
        const required = JSON.parse(text) as PaymentRequired;
        assert.ok(isPaymentRequiredV2(required));
        const payload = await client.createPaymentPayload({
          ...required,
          extensions: appendPaymentIdentifierToExtensions(required.extensions ?? {}, id),
        });
        const decoded = decodeProof(encodeProof(JSON.parse(JSON.stringify(payload))));
        assert.ok(decoded.kind === 'decoded');
        assert.equal(decoded.buyerToken, TOKEN);
        assert.equal(decoded.paymentIdentifier, text === terse.document ? id : undefined);
      }
  });
});

describe('the challenge of a resource that is in catalogues', () => {
  const listed: PricedResource = {
    ...report,
    bazaar: {
      about: { mimeType: 'text/csv' },
      invoke: { info: { input: { type: 'http' } }, schema: { type: 'object' } },
      inPlace: { routeTemplate: '/r/:city', info: { input: { type: 'http' } }, schema: { type: 'object' } },
      tool: {
        url: 'https://shop.example/mcp',
        extension: { info: { input: { type: 'mcp' } }, schema: { title: 'x' } },
      },
    },
  };
  const bazaarOf = (document: string): unknown => JSON.parse(document).extensions.bazaar;
  const at = (url: string) => ({ ...facts('req_1'), url });

  it('has the form of its channel, whole, beside the token', () => {
    const made = challengeFor(listed, acceptsOf(terms), 'https://shop.example');
    const { document, terse, header } = made.fresh(facts('req_1'));
    assert.deepEqual(bazaarOf(document), listed.bazaar?.invoke);
    assert.deepEqual(decodePaymentRequiredHeader(header).extensions?.['bazaar'], listed.bazaar?.invoke);
    assert.deepEqual(bazaarOf(made.fresh(at('https://shop.example/r/Berlin')).document), listed.bazaar?.inPlace);
    assert.deepEqual(bazaarOf(terse.document), listed.bazaar?.tool?.extension);
    assert.equal(bazaarOf(terse.tokenOnly), undefined);
    assert.equal(JSON.parse(document).extensions['agent-commerce-buyer'].info.token, TOKEN);
    const refused = made.refused(at('https://shop.example/r/Berlin'), REFUSAL);
    assert.deepEqual(bazaarOf(refused.document), listed.bazaar?.inPlace);
  });

  it('leaves out what its head has no room for, in one order: the icon first, the form last', () => {
    const ORDER = [
      ...['its icon', 'the schema of its catalogue form', 'its description', 'its tags', 'the name of the merchant'],
      ...['its signed offers', 'its catalogue form'],
    ];
    const signed = { info: { offers: ['s'.repeat(300)] }, schema: { type: 'object' } };
    const labels = {
      serviceName: 'n'.repeat(32),
      tags: ['a', 'b', 'c', 'd', 'e'].map((letter) => letter.repeat(32)),
      iconUrl: `https://shop.example/${'i'.repeat(200)}`,
    };
    const { about, tool } = listed.bazaar ?? assert.fail();
    for (const url of [undefined, 'https://shop.example/r/Berlin']) {
      const lengths = new Set<number>();
      for (let size = 0; size < 2_500; size += 10) {
        const form = { info: { input: { text: 'x'.repeat(size) } }, schema: { title: 't'.repeat(200) } };
        const bazaar = { about, tool, invoke: form, inPlace: form };
        const sized = { ...listed, description: 'y'.repeat(200), labels, bazaar };
        const made = challengeFor(sized, acceptsOf(terms), 'https://shop.example', signed);
        const { header, leftOut } = url === undefined ? made.fresh(facts('req_1')) : made.refused(at(url), REFUSAL);
        lengths.add(leftOut.length);
        assert.deepEqual(leftOut, ORDER.slice(0, leftOut.length));
        assert.ok(fieldOf(header) <= (url === undefined ? USUAL_ROOM.plain : ROOM_OF_REFUSAL), `${header.length}`);
        const required = decodePaymentRequiredHeader(header);
        assert.ok(isPaymentRequiredV2(required));
        const { resource, extensions = {} } = required;
        const { serviceName, tags, iconUrl } = ResourceInfoSchema.parse(resource);
        const shown = extensions['bazaar'] as Extension | undefined;
        if (shown !== undefined) assert.deepEqual(shown.info, form.info);
        const isThere = [
          iconUrl,
          'title' in (shown?.schema ?? {}) || undefined,
          resource.description,
          tags,
          serviceName,
        ];
        assert.deepEqual(
          [...isThere, extensions['offer-receipt'], shown].map((part) => part !== undefined),
          ORDER.map((_, place) => place >= leftOut.length),
        );
        if (leftOut.length === 0) assert.deepEqual({ serviceName, tags, iconUrl }, labels);
      }
      assert.deepEqual(lengths, new Set([0, 1, 2, 3, 4, 5, 6, 7]));
    }
  });

  it('has no header where not even the shortest document fits, and the offer in the body', () => {
    const long = `https://shop.example/${'x'.repeat(2_000)}`;
    const { header, body, leftOut } = challengeFor(listed, acceptsOf(terms), long).fresh(facts('req_1'));
    assert.equal(header, '');
    assert.match(leftOut.join(), /PAYMENT-REQUIRED/);
    assert.equal(JSON.parse(body).payment.envelope.accepts[0].payTo, terms.payTo);
  });
});

describe('the PAYMENT-RESPONSE header', () => {
  const settled = {
    success: true,
    transaction: `0x${'ab'.repeat(32)}`,
    network: terms.network,
    status: 'settled',
    provider: 'x402',
    amount: '0.01',
    currency: 'TUSD',
    payer: freshAddress(),
    receiptId: 'receipt_1',
    requestId: 'req_1',
  } as const;

  it('is read by the official client', () => {
    assert.deepEqual(decodePaymentResponseHeader(encodeHeader(settled)), settled);
  });
});

const BASE = 'https://shop.example';
const factsAt = (url: string | undefined) => ({ requestId: 'req_1', expiresAt: 'later', token: TOKEN, url });

describe('the URL of a challenge in place', () => {
  for (const [path, url] of [
    ['/reports/Berlin', '/reports/Berlin'],
    ['/reports/z%c3%bcrich', '/reports/z%C3%BCrich'],
    ['/reports/%42erlin%7E', '/reports/Berlin~'],
    ['/reports/S%C3%A3o%20Paulo', '/reports/S%C3%A3o%20Paulo'],
    ['/reports/a,b;c', '/reports/a,b;c'],
    ['/reports/"<x>"', '/reports/%22%3Cx%3E%22'],
  ] as const)
    it(`of ${path} ends with ${url}`, () => {
      assert.equal(inPlaceUrl(BASE, path), BASE + url);
    });

  it('has at most 1,024 bytes', () => {
    const room = 1_024 - BASE.length - 1;
    assert.equal(inPlaceUrl(BASE, `/${'x'.repeat(room)}`)?.length, 1_024);
    assert.equal(inPlaceUrl(BASE, `/${'x'.repeat(room + 1)}`), undefined);
  });

  it('is one of its resource whatever its parameters hold, and of no other', () => {
    const urls = inPlaceUrls(`${BASE}/reports/{city}/of/{year}`);
    for (const path of ['/reports/Berlin/of/2026', '/reports/%22%3C/of/~', '/reports//of/'])
      assert.ok(urls.test(inPlaceUrl(BASE, path) ?? ''), path);
    for (const url of [`${BASE}/reports/Berlin`, `${BASE}/reports/a/b/of/c`, 'https://else.example/reports/a/of/b'])
      assert.ok(!urls.test(url), url);
  });

  it('is compared with the normal form of a template', () => {
    assert.ok(inPlaceUrls(`${BASE}/%72%c3%a9ports/{city}`).test(inPlaceUrl(BASE, '/%72%c3%a9ports/x') ?? ''));
  });
});

describe('a challenge in place', () => {
  const template = challengeFor(report, acceptsOf(termsFor()), BASE);

  it('differs from the one of the invoke URL in its URL alone, in every form', () => {
    const url = `${BASE}/reports/Berlin`;
    const there = template.fresh(factsAt(url));
    const here = template.fresh(factsAt(undefined));
    const moved = (text: string) => JSON.parse(text.replace(JSON.stringify(RESOURCE_URL), JSON.stringify(url)));
    assert.deepEqual(JSON.parse(there.document), moved(here.document));
    assert.deepEqual(JSON.parse(there.body), moved(here.body));
    assert.deepEqual(decodePaymentRequiredHeader(there.header), moved(here.document));
    assert.equal(JSON.parse(template.refused(factsAt(url), REFUSAL).document).resource.url, url);
    assert.equal(JSON.parse(template.fresh(factsAt(undefined)).document).resource.url, RESOURCE_URL);
  });
});

const x402 = { ...termsFor(), maxTimeoutSeconds: 100 };
const REPORT = {
  id: 'report',
  name: 'Report',
  description: undefined,
  mimeType: 'application/json',
  backend: { timeoutMs: 10_000 },
  pricing: { type: 'fixed', amount: '0.01', currency: 'TUSD', units: 10_000n } as const,
};

/** The offer of one resource under a clock, and how often it was signed. */
function offerAt(clock: { nowMs: number }, sign?: OfferSigner['sign']) {
  const key = hostKey(pem(), BASE);
  const untils: number[] = [];
  const signer: OfferSigner = {
    now: () => clock.nowMs,
    sign: (requirements, url, validUntil) => {
      untils.push(validUntil);
      return sign === undefined
        ? signedOffers(key, requirements, url, validUntil)
        : sign(requirements, url, validUntil);
    },
  };
  const config = { merchant: { publicBaseUrl: BASE }, resources: [REPORT], x402 };
  const offer = compileOffers(config, tokensUnder(), { signer }).get('report') ?? assert.fail();
  const challenge = () => {
    const expiresAt = new Date(clock.nowMs + 100_000).toISOString();
    const { document } = offer.challenge.fresh({ requestId: 'r', expiresAt, token: offer.issueToken(undefined) });
    return (JSON.parse(document) as { extensions: Record<string, unknown> }).extensions['offer-receipt'];
  };
  return { untils, challenge };
}

describe('a signed offer', () => {
  it('is signed once for all challenges of half its time, and outlives each of them', () => {
    const clock = { nowMs: 1_000_000 };
    const { untils, challenge } = offerAt(clock);
    assert.equal(untils.length, 0, 'nothing is signed before it is asked for');
    const first = challenge();
    for (let second = 0; second < 50; second += 1) {
      assert.deepEqual(challenge(), first);
      assert.ok((untils.at(-1) ?? 0) * 1_000 >= clock.nowMs + 100_000, `at ${second}`);
      clock.nowMs += 1_000;
    }
    assert.notDeepEqual(challenge(), first);
    assert.deepEqual(untils, [1_150, 1_200]);
  });

  it('is left out where it cannot be signed', () => {
    const { challenge } = offerAt({ nowMs: 1_000_000 }, () => undefined);
    assert.equal(challenge(), undefined);
  });
});
