import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { afterEach, describe, it } from 'node:test';
import type { Response } from 'express';
import { createAdmission } from '../../../src/adapters/acp/admission.ts';
import { AcpError } from '../../../src/adapters/acp/error.ts';
import { Slots } from '../../../src/server/limits/load-shedding.ts';
import { readMetrics } from '../../support/read-metrics.ts';
import { eventually } from '../../support/records.ts';
import {
  askAcp,
  assertAcpError,
  CART,
  type CheckoutTestbed,
  type CheckoutTestbedParts,
  openCheckoutTestbed,
  rightHeaders,
} from './testbed.ts';

let opened: CheckoutTestbed | undefined;
afterEach(async () => {
  await opened?.close();
  opened = undefined;
});

async function openLimited(parts: CheckoutTestbedParts): Promise<CheckoutTestbed> {
  opened = await openCheckoutTestbed(parts);
  return opened;
}

/** Delays the backend's next answer until the result is called. */
function delayAnswer({ backend }: CheckoutTestbed): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  backend.misbehave({ kind: 'wait', acts: 'after', until: promise });
  return resolve;
}

const metric = async ({ gateway }: CheckoutTestbed, line: string): Promise<number> => {
  const text = await readMetrics(gateway.managementUrl);
  return Number(
    text
      .split('\n')
      .find((candidate) => candidate.startsWith(`${line} `))
      ?.split(' ')
      .at(-1) ?? 0,
  );
};

describe('checkout calls beyond their limit', () => {
  for (const method of ['POST', 'GET'] as const)
    it(`are answered with Retry-After, ${method} as well, and leave no claim behind`, async () => {
      const open = await openLimited({ acp: { limits: { maxInFlight: 1 } } });
      const release = delayAnswer(open);
      const arrived = open.backend.arrived();
      const first = askAcp(open.gateway.url);
      await arrived;
      const headers = { 'idempotency-key': 'refused', 'request-id': 'r-1' };
      const asked = method === 'GET' ? { method, path: '/checkout_sessions/cs_1', headers } : { headers };
      const busy = await askAcp(open.gateway.url, asked);
      assertAcpError(busy, 503, 'service_unavailable');
      assert.equal(busy.headers['retry-after'], '1');
      assert.equal(busy.headers['request-id'], 'r-1');
      assert.equal(await metric(open, 'acg_shed_total{reason="in_flight"}'), 1);
      release();
      assert.equal((await first).status, 201);
      const again = await askAcp(open.gateway.url, { headers, body: { ...CART, currency: 'eur' } });
      assert.equal(again.status, 201, again.text);
    });

  it('are counted until their work is done, also when the caller has left', async () => {
    const open = await openLimited({ acp: { limits: { maxInFlight: 1 } } });
    const release = delayAnswer(open);
    const arrived = open.backend.arrived();
    const leaving = http.request(`${open.gateway.url}/acp/checkout_sessions`, {
      method: 'POST',
      headers: rightHeaders('POST'),
    });
    leaving.on('error', () => undefined);
    leaving.end(JSON.stringify(CART));
    await arrived;
    leaving.destroy();
    const gone = async () => ((await metric(open, 'acg_requests_in_flight')) === 0 ? true : undefined);
    await eventually(gone, 'the caller to be gone');
    assertAcpError(await askAcp(open.gateway.url), 503, 'service_unavailable');
    release();
    const served = async () => ((await askAcp(open.gateway.url)).status === 201 ? true : undefined);
    await eventually(served, 'a free slot');
    assert.ok(open.backend.session('cs_2') !== undefined, 'the call of the caller that left came to its end');
  });

  it('are refused with an ACP error when the whole gateway is full, after their token is compared', async () => {
    const open = await openLimited({ overrides: { limits: { maxInFlight: 1 } } });
    const release = delayAnswer(open);
    const arrived = open.backend.arrived();
    const first = askAcp(open.gateway.url);
    await arrived;
    assertAcpError(await askAcp(open.gateway.url), 503, 'service_unavailable');
    assertAcpError(await askAcp(open.gateway.url, { headers: { authorization: undefined } }), 401, 'unauthorized');
    release();
    assert.equal((await first).status, 201);
  });
});

describe('the admission of a checkout call', () => {
  const slots = [new Slots(1), new Slots(2)];
  const admission = (accepting: boolean) =>
    createAdmission({
      gate: { accepting: () => accepting, begin: () => () => undefined },
      shedding: () => undefined,
      slots,
    });
  const answer = (): Response => new http.ServerResponse(new http.IncomingMessage(null as never)) as Response;

  it('refuses calls once the gate is closed', () => {
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
