import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { afterEach, describe, it } from 'node:test';
import type { Response } from 'express';
import { createAdmission } from '../../../src/adapters/acp/admission.ts';
import { AcpError } from '../../../src/adapters/acp/error.ts';
import { createSlots } from '../../../src/server/load-shedding/slots.ts';
import { eventually } from '../../support/books.ts';
import {
  askAcp,
  assertAcpError,
  CART,
  type CheckoutShop,
  type CheckoutShopParts,
  openCheckoutShop,
  rightHeaders,
} from './shop.ts';

let open: CheckoutShop | undefined;
afterEach(async () => {
  await open?.close();
  open = undefined;
});

async function opened(parts: CheckoutShopParts): Promise<CheckoutShop> {
  open = await openCheckoutShop(parts);
  return open;
}

/** Holds the merchant's next answer back until the result is called. */
function holdBack({ merchant }: CheckoutShop): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  merchant.misbehave({ kind: 'wait', acts: 'after', until: promise });
  return resolve;
}

const metric = async ({ shop }: CheckoutShop, line: string): Promise<number> => {
  const text = await (await fetch(`${shop.managementUrl}/metrics`)).text();
  return Number(
    text
      .split('\n')
      .find((candidate) => candidate.startsWith(`${line} `))
      ?.split(' ')
      .at(-1) ?? 0,
  );
};

describe('checkout calls beyond their number', () => {
  for (const method of ['POST', 'GET'] as const)
    it(`are told to come again, ${method} as well, and leave no claim behind`, async () => {
      const desk = await opened({ acp: { limits: { maxInFlight: 1 } } });
      const release = holdBack(desk);
      const arrived = desk.merchant.arrived();
      const first = askAcp(desk.shop.url);
      await arrived;
      const headers = { 'idempotency-key': 'refused', 'request-id': 'r-1' };
      const asked = method === 'GET' ? { method, path: '/checkout_sessions/cs_1', headers } : { headers };
      const busy = await askAcp(desk.shop.url, asked);
      assertAcpError(busy, 503, 'service_unavailable');
      assert.equal(busy.headers['retry-after'], '1');
      assert.equal(busy.headers['request-id'], 'r-1');
      assert.equal(await metric(desk, 'acg_shed_total{reason="in_flight"}'), 1);
      release();
      assert.equal((await first).status, 201);
      const again = await askAcp(desk.shop.url, { headers, body: { ...CART, currency: 'eur' } });
      assert.equal(again.status, 201, again.text);
    });

  it('are counted until their work is done, also when the caller has left', async () => {
    const desk = await opened({ acp: { limits: { maxInFlight: 1 } } });
    const release = holdBack(desk);
    const arrived = desk.merchant.arrived();
    const leaving = http.request(`${desk.shop.url}/acp/checkout_sessions`, {
      method: 'POST',
      headers: rightHeaders('POST'),
    });
    leaving.on('error', () => undefined);
    leaving.end(JSON.stringify(CART));
    await arrived;
    leaving.destroy();
    const gone = async () => ((await metric(desk, 'acg_requests_in_flight')) === 0 ? true : undefined);
    await eventually(gone, 'the caller to be gone');
    assertAcpError(await askAcp(desk.shop.url), 503, 'service_unavailable');
    release();
    const served = async () => ((await askAcp(desk.shop.url)).status === 201 ? true : undefined);
    await eventually(served, 'a place');
    assert.ok(desk.merchant.session('cs_2') !== undefined, 'the call of the one who left came to its end');
  });

  it('are refused in the words of ACP when the whole gateway is full, and not at its door', async () => {
    const desk = await opened({ overrides: { limits: { maxInFlight: 1 } } });
    const release = holdBack(desk);
    const arrived = desk.merchant.arrived();
    const first = askAcp(desk.shop.url);
    await arrived;
    assertAcpError(await askAcp(desk.shop.url), 503, 'service_unavailable');
    assertAcpError(await askAcp(desk.shop.url, { headers: { authorization: undefined } }), 401, 'unauthorized');
    release();
    assert.equal((await first).status, 201);
  });
});

describe('a checkout call at the gate', () => {
  const slots = [createSlots(1), createSlots(2)];
  const admission = (accepting: boolean) =>
    createAdmission({
      gate: { accepting: () => accepting, begin: () => () => undefined },
      shedding: () => undefined,
      slots,
    });
  const answer = (): Response => new http.ServerResponse(new http.IncomingMessage(null as never)) as Response;

  it('does not come in any more once it is closed', () => {
    assert.throws(
      () => admission(false)(answer()),
      (error) => error instanceof AcpError && error.status === 503,
    );
  });

  it('holds its slots until its connection and its work are done, in either order', async () => {
    const held = () => slots.map((slot) => slot.inFlight());
    for (const order of ['work first', 'connection first']) {
      const res = answer();
      const leave = admission(true)(res);
      assert.deepEqual(held(), [1, 1]);
      const closed = once(res, 'close');
      if (order === 'work first') leave();
      else res.emit('close');
      assert.deepEqual(held(), [1, 1], order);
      if (order === 'work first') res.emit('close');
      else leave();
      await closed;
      assert.deepEqual(held(), [0, 0], order);
    }
  });
});
