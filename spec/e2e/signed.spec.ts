import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { verifyOfferSignatureJWS, verifyReceiptMatchesOffer } from '@x402/extensions/offer-receipt';

import type { JsonObject } from '../../src/json/json.ts';
import { receiptId as newReceiptId } from '../../src/receipts/receipt.ts';
import { openSignedShop, purchaseOf, type SignedShop } from '../../verification/signed/deliveries.ts';
import { receiptWhen } from '../support/records.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { bring } from './bring.ts';

/** An answer with what stands before and behind its body. */
interface Whole {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly trailers: NodeJS.Dict<string>;
  readonly length: number;
  readonly sha256: string;
}

async function invoke(
  { gateway }: Pick<Testbed, 'gateway'>,
  id: string,
  input: unknown,
  headers: Readonly<Record<string, string>>,
): Promise<Whole> {
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const url = `${gateway.url}/api/resources/${id}/invoke`;
  const all = { 'content-type': 'application/json', ...headers };
  http
    .request(url, { method: 'POST', headers: all, agent: false }, resolve)
    .on('error', reject)
    .end(JSON.stringify(input));
  const answer = await promise;
  const sum = createHash('sha256');
  let length = 0;
  for await (const chunk of answer) {
    length += (chunk as Buffer).byteLength;
    sum.update(chunk as Buffer);
  }
  const { statusCode = 0, trailers } = answer;
  return { status: statusCode, headers: answer.headers, trailers, length, sha256: sum.digest('hex') };
}

function responseOf(header: string | string[] | undefined | null): JsonObject {
  return JSON.parse(Buffer.from(String(header), 'base64').toString()) as JsonObject;
}

function statementOf(jws: string | undefined): JsonObject {
  return JSON.parse(Buffer.from(jws?.split('.')[1] ?? '', 'base64url').toString()) as JsonObject;
}

describe('a gateway with a key of receipts', () => {
  let shop: SignedShop;
  before(async () => {
    shop = await openSignedShop();
  });
  after(() => shop?.close());

  for (const [title, input] of [
    ['of a declared length', { size: 100 }],
    ['of no declared length', { size: 8_000_000, undeclared: true }],
  ] as const)
    it(`states an answer ${title} behind it, as it passed`, async () => {
      const proof = await shop.proof('bytes', input);
      const answer = await invoke(shop, 'bytes', input, { 'payment-signature': proof, te: 'trailers' });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['trailer'], 'agent-commerce-delivery');
      assert.equal(answer.headers['content-length'], undefined);
      const { answer: stated, state } = statementOf(answer.trailers['agent-commerce-delivery']);
      assert.deepEqual(stated, { sha256: answer.sha256, bytes: input.size, status: 200 });
      assert.equal(state, 'delivered');
    });

  it('sends nothing behind an answer whose caller does not take it', async () => {
    for (const te of [undefined, 'gzip', 'trailers-not']) {
      const proof = await shop.proof('greeting');
      const headers = { 'payment-signature': proof, ...(te === undefined ? {} : { te }) };
      const answer = await invoke(shop, 'greeting', {}, headers);
      assert.equal(answer.headers['trailer'], undefined);
      assert.equal(answer.headers['content-length'], String(answer.length));
      assert.deepEqual({ ...answer.trailers }, {});
    }
  });

  it('signs nothing of a free call and of an answer without a body', async () => {
    const free = await invoke(shop, 'free_greeting', {}, { te: 'trailers' });
    assert.deepEqual([free.headers['trailer'], free.headers['payment-response']], [undefined, undefined]);
    const proof = await shop.proof('nothing');
    const { status, headers } = await invoke(shop, 'nothing', {}, { 'payment-signature': proof, te: 'trailers' });
    assert.deepEqual([status, headers['trailer']], [204, undefined]);
    assert.ok('extensions' in responseOf(headers['payment-response']));
  });

  it('gives no receipt for a refused proof, and none for an answer that did not come', async () => {
    const proof = await shop.proof('failing', { status: 500 });
    const other = await invoke(shop, 'market_report', { city: 'Bonn' }, { 'payment-signature': proof, te: 'trailers' });
    assert.deepEqual([other.status, other.headers['payment-response']], [402, undefined]);
    const failed = await invoke(shop, 'failing', { status: 500 }, { 'payment-signature': proof, te: 'trailers' });
    assert.equal(failed.status, 502);
    const response = responseOf(failed.headers['payment-response']);
    assert.deepEqual(
      [response['success'], 'extensions' in response, failed.headers['trailer']],
      [true, false, undefined],
    );
    const { receiptId } = response;
    const state = await fetch(`${shop.gateway.url}/api/purchases/${String(receiptId)}`, {
      headers: { 'payment-signature': proof },
    });
    const purchase = (await state.json()) as JsonObject;
    assert.deepEqual([state.status, purchase['state']], [200, 'undelivered']);
    assert.ok(!('extensions' in (purchase['payment'] as JsonObject)));
    const stated = statementOf(String(purchase['statement']));
    assert.deepEqual([stated['state'], stated['answer'], stated['input']], ['undelivered', undefined, undefined]);
  });

  describe('shows a purchase', () => {
    const input = { city: 'Ulm' };
    let proof: string;
    let receiptId: string;
    before(async () => {
      proof = await shop.proof('market_report', input);
      const { payment } = await bring(shop.gateway, 'market_report', input, { proof });
      receiptId = payment?.receiptId ?? '';
      await purchaseOf(shop, { receiptId }, proof);
    });
    const ask = (id: string, headers: Readonly<Record<string, string>>) =>
      fetch(`${shop.gateway.url}/api/purchases/${id}`, { headers });
    const without = (member: string, from = proof): string => {
      const payload = JSON.parse(Buffer.from(from, 'base64').toString()) as JsonObject;
      return Buffer.from(JSON.stringify({ ...payload, [member]: undefined })).toString('base64');
    };

    const otherwiseSigned = (from: string): string => {
      const document = JSON.parse(Buffer.from(from, 'base64').toString()) as { payload: { signature: string } };
      const { payload } = document;
      const digit = payload.signature[20] === '0' ? '1' : '0';
      const signature = payload.signature.slice(0, 20) + digit + payload.signature.slice(21);
      return Buffer.from(JSON.stringify({ ...document, payload: { ...payload, signature } })).toString('base64');
    };

    it('to its buyer alone, and tells every other caller the same', async () => {
      const stranger = await shop.proof('market_report', input);
      const keyed = await bring(shop.gateway, 'market_report', input, {
        proof: await shop.proof('market_report', input),
        key: 'key-of-another-buyer',
      });
      const rows: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
        [receiptId, {}],
        [receiptId, { 'payment-signature': 'none' }],
        // What the chain shows of a proof.
        [receiptId, { 'payment-signature': without('extensions') }],
        [receiptId, { 'payment-signature': stranger }],
        [receiptId, { 'payment-signature': otherwiseSigned(proof) }],
        [receiptId, { 'payment-signature': without('extensions', stranger), 'idempotency-key': 'guessed' }],
        [newReceiptId(), { 'payment-signature': proof }],
        ['receipt_1', { 'payment-signature': proof }],
        [keyed.payment?.receiptId ?? '', { 'payment-signature': proof }],
      ];
      const answers = await Promise.all(
        rows.map(async ([id, headers]) => {
          const answer = await ask(id, headers);
          const { requestId: _own, ...body } = (await answer.json()) as JsonObject;
          return JSON.stringify([answer.status, answer.headers.get('cache-control'), body]);
        }),
      );
      assert.equal(new Set(answers).size, 1, answers.join('\n'));
      assert.match(answers[0] ?? '', /^\[404,"no-store",\{"status":"error","code":"NOT_FOUND"/);
    });

    it('with no secret of the store and no data of the operator', async () => {
      const text = await (await ask(receiptId, { 'payment-signature': proof })).text();
      assert.deepEqual(Object.keys(JSON.parse(text) as object), [
        ...['receiptId', 'resourceId', 'state', 'deliveredAt', 'payment', 'statement'],
      ]);
      assert.ok(!/durationMs|callId|token/i.test(text), text);
    });
  });
});

describe('signed offers', () => {
  let shop: SignedShop;
  before(async () => {
    shop = await openSignedShop({ offers: true });
  });
  after(() => shop?.close());

  it('verify with the official package, match the receipt, and are signed once for many challenges', async () => {
    const [publicJwk] = shop.jwks.keys;
    const quotes = [await shop.quote('market_report', { city: 'A' }), await shop.quote('market_report', { city: 'B' })];
    const offers = quotes.map(({ body }) => {
      const extensions = body.payment.envelope.extensions as unknown as JsonObject;
      return (extensions['offer-receipt'] as { info: { offers: [{ signature: string }] } }).info.offers[0];
    });
    assert.equal(offers[0]?.signature, offers[1]?.signature);
    const offer = await verifyOfferSignatureJWS(offers[0] as never, publicJwk as never);
    const [accepted] = quotes[0]?.body.payment.accepts ?? [];
    assert.deepEqual(
      [offer.amount, offer.payTo, offer.network],
      [...[accepted?.['amount'], accepted?.['payTo'], accepted?.['network']]],
    );
    assert.ok(offer.validUntil >= Date.now() / 1_000 + 120);
    // The official client echoes it.
    const proof = await shop.buyer.pay(quotes[0]?.body.payment.envelope);
    const bought = await bring(shop.gateway, 'market_report', { city: 'A' }, { proof });
    assert.equal(bought.status, 200);
    const info = bought.payment?.extensions?.['offer-receipt']?.info as { receipt: never } | undefined;
    const decoded = { ...offer, signedOffer: offers[0], format: 'jws', acceptIndex: 0 } as never;
    assert.ok(verifyReceiptMatchesOffer(info?.receipt as never, decoded, [shop.buyer.address]));
  });
});

describe('a gateway without a key of receipts', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed?.close());

  it('answers without a trailer and a statement, whatever its caller takes', async () => {
    const proof = await testbed.proof('greeting');
    const headers = { 'payment-signature': proof, te: 'trailers', 'x-request-id': 'unsigned' };
    const answer = await invoke(testbed, 'greeting', {}, headers);
    assert.equal(answer.headers['trailer'], undefined);
    assert.equal(answer.headers['content-length'], String(answer.length));
    const response = responseOf(answer.headers['payment-response']);
    assert.ok(!('extensions' in response));
    assert.ok(!('digests' in (await receiptWhen(testbed.gateway, 'unsigned', true))));
    const id = String(response['receiptId']);
    const state = await fetch(`${testbed.gateway.url}/api/purchases/${id}`, {
      headers: { 'payment-signature': proof },
    });
    assert.equal(((await state.json()) as JsonObject)['message'], 'No such route.');
  });
});
