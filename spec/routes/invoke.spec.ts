import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBuyer } from '../support/buyer.ts';
import { type Sent, send, sharedRoutes } from './world.ts';

const decoded = (header: unknown): unknown => JSON.parse(Buffer.from(String(header), 'base64').toString());
/** The facilitator asks for no money, so the buyer needs none. */
const noToken = { mint: async () => undefined, balanceOf: async () => 0n };

describe('a call of a resource', () => {
  const world = sharedRoutes();
  const invoke = (resource: string, input: unknown, headers: Sent['headers'] = {}) =>
    send(world().agents, 'POST', `/api/resources/${resource}/invoke`, {
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(input),
    });

  it('has the offer in the body of its 402 and in PAYMENT-REQUIRED, the same in both', async () => {
    const { headers, text } = await invoke('market_report', { city: 'Berlin' }).expect(402);
    const body = JSON.parse(text) as { readonly payment: { readonly accepts: unknown; readonly envelope: object } };
    assert.deepEqual(decoded(headers['payment-required']), body.payment.envelope);
    assert.partialDeepStrictEqual(body, {
      status: 'payment-required',
      code: 'PAYMENT_REQUIRED',
      requestId: headers['x-request-id'],
      resourceId: 'market_report',
      payment: { provider: 'x402', version: '2', amount: '0.01', envelope: { accepts: body.payment.accepts } },
    });
    assert.equal(headers['payment-response'], undefined);
  });

  it('with an illegible or a repeated payment has a new offer, and the reason', async () => {
    for (const proof of ['bm90aGluZw==', ['e30=', 'e30='], 'x'.repeat(8_193)]) {
      const { text, headers } = await invoke(
        'market_report',
        { city: 'Berlin' },
        { 'payment-signature': proof },
      ).expect(402);
      const { error } = JSON.parse(text) as { error: { code: string; reason: string } };
      assert.deepEqual([error.code, error.reason], ['PAYMENT_INVALID', 'invalid_payload']);
      assert.equal(headers['cache-control'], 'no-store');
    }
  });

  it('with the payment header of x402 version 1 has a new offer, and the version that is served', async () => {
    const { text } = await invoke('market_report', { city: 'Berlin' }, { 'x-payment': 'bm90aGluZw==' }).expect(402);
    const { error } = JSON.parse(text) as { error: { reason: string; message: string } };
    assert.equal(error.reason, 'invalid_x402_version');
    assert.match(error.message, /x402Version must be 2, over HTTP in the header PAYMENT-SIGNATURE/);
  });

  it('with a proof of version 2 in that header is told the right header', async () => {
    const buyer = await createBuyer(noToken, 0n);
    const quote = await invoke('market_report', { city: 'Berlin' }).expect(402);
    const proof = await buyer.pay(decoded(quote.headers['payment-required']));
    const { text } = await invoke('market_report', { city: 'Berlin' }, { 'x-payment': proof }).expect(402);
    const { error } = JSON.parse(text) as { error: { reason: string; message: string } };
    assert.equal(error.reason, 'invalid_payload');
    assert.match(error.message, /send it in PAYMENT-SIGNATURE/);
  });

  it('is asked for its price by GET and HEAD, with the challenge of a POST without a body', async () => {
    const ask = (method: string, resource: string, headers: Sent['headers'] = {}) =>
      send(world().agents, method, `/api/resources/${resource}/invoke`, { headers });
    const stable = ({ headers, text }: { headers: Record<string, unknown>; text?: string }) => {
      const { 'x-request-id': _id, date: _date, allow: _allow, 'payment-required': offer, ...others } = headers;
      const fresh = /"(?:requestId|expiresAt|token)": *"[^"]+"/g;
      return [others, JSON.stringify(decoded(offer)).replaceAll(fresh, ''), text?.replaceAll(fresh, '')];
    };
    world().backend.forget();
    const [get, head, post] = await Promise.all(
      ['GET', 'HEAD', 'POST'].map((method) => ask(method, 'market_report').expect(402)),
    );
    assert.ok(get !== undefined && head !== undefined && post !== undefined);
    assert.deepEqual([get.headers['allow'], head.headers['allow'], post.headers['allow']], ['POST', 'POST', undefined]);
    assert.deepEqual(stable(get), stable(post));
    assert.equal(head.text, undefined);
    assert.deepEqual(stable({ headers: head.headers, text: post.text }), stable(post));
    const others: readonly (readonly [string, Sent['headers']])[] = [
      ['market_report', { 'payment-signature': 'bm90aGluZw==' }],
      ['market_report', { 'x-payment': 'bm90aGluZw==' }],
      ['market_report', { 'payment-signature': ['e30=', 'e30='] }],
      ['cities', {}],
      ['nowhere', {}],
    ];
    for (const [resource, headers] of others)
      for (const method of ['GET', 'HEAD']) await ask(method, resource, headers).expect(405).expect('allow', 'POST');
    assert.deepEqual(world().backend.requests, []);
  });

  it('that is free ignores a payment', async () => {
    for (const name of ['payment-signature', 'x-payment']) {
      const { headers } = await invoke('cities', {}, { [name]: 'bm90aGluZw==' }).expect(200);
      assert.equal(headers['payment-response'], undefined);
    }
  });
});
