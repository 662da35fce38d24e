/** Checkout calls that the gateway refuses, each with a secret in it. */

import assert from 'node:assert/strict';
import http from 'node:http';
import { rightHeaders } from '../adapters/acp/testbed.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { eventually } from '../support/records.ts';
import { CANARIES, COMPLETE, CREATE, ECHOED } from './canary-buyer.ts';
import type { WatchedGateway } from './canary-checkouts.ts';

/** Sends calls that the gateway itself refuses, each with a secret in it. */
export async function sendRefused(watched: WatchedGateway): Promise<void> {
  const { open, send, post } = watched;
  const path = await open();
  const complete = `${path}/complete`;
  const statusOf = async (asked: Parameters<typeof send>[0]) => (await send(asked)).status;
  const key = { 'idempotency-key': ECHOED['an idempotency key'] };
  const token = `Bearer ${CANARIES['an unknown token']}`;
  assert.equal(await statusOf({ path: complete, headers: { authorization: token }, body: COMPLETE }), 401);
  assert.equal(await statusOf({ path: complete, headers: { 'api-version': token }, body: COMPLETE }), 400);
  assert.equal(await statusOf({ path: complete, headers: { 'content-type': token }, body: COMPLETE }), 415);
  assert.equal(await statusOf({ path: complete, headers: { 'content-encoding': token }, body: COMPLETE }), 415);
  const long = { 'idempotency-key': ECHOED['an idempotency key'].repeat(20) };
  assert.equal(await statusOf({ path: complete, headers: long, body: COMPLETE }), 400);
  assert.equal(await statusOf({ path: `${complete}/${CANARIES["a card's token"]}`, body: COMPLETE }), 404);
  const query = `?token=${CANARIES['a token in a query']}`;
  await send({ path: `${complete}${query}`, headers: key, body: COMPLETE });
  const broken = `{"payment_data":"${CANARIES['a secret in a broken body']}"`;
  assert.equal(await statusOf({ path: complete, headers: key, body: broken }), 400);
  const twice = `{"a":1,"a":"${CANARIES['a secret in a broken body']}"}`;
  assert.equal(await statusOf({ path: complete, headers: key, body: twice }), 400);
  const refused = CANARIES['a secret in a refused body'];
  for (const body of [
    { ...COMPLETE, [ECHOED['the name of a member']]: refused },
    { ...COMPLETE, [refused]: refused },
    { ...COMPLETE, authentication_result: { outcome: refused } },
    { ...COMPLETE, marketing_consents: [{ channel: refused, opted_in: refused }] },
    { ...CREATE, payment_data: refused },
    { payment_data: { handler_id: refused } },
  ])
    await post(complete, body, 'refused', 400, 'invalid_request_body');
  const large = { ...COMPLETE, order_notes: CANARIES['a secret in a refused body'].repeat(12_000) };
  await post(complete, large, 'large', 413, 'request_body_too_large');
  const stranger = `/checkout_sessions/${CANARIES['an unknown session']}`;
  await post(`${stranger}/complete`, COMPLETE, 'stranger', 404, 'checkout_session_not_found');
  assert.equal(await statusOf({ method: 'GET', path: stranger }), 404);
  assert.equal(await statusOf({ method: 'DELETE', path: stranger }), 405);
}

/** Sends a call whose body breaks off. */
export async function leaveInTheMiddle(watched: WatchedGateway): Promise<void> {
  const { gateway, open } = watched;
  const path = `/acp${await open()}/complete`;
  const request = http.request(`${gateway.url}${path}`, { method: 'POST', headers: rightHeaders('POST') });
  request.on('error', () => undefined);
  request.write(JSON.stringify(COMPLETE).slice(0, -1));
  const metrics = async () => readMetrics(gateway.managementUrl);
  const come = async () => (/^acg_requests_in_flight 1$/m.test(await metrics()) ? true : undefined);
  await eventually(come, 'the call to come');
  request.destroy();
  await gateway.process.logged(
    ({ resource, outcome }) => resource === 'completeCheckoutSession' && outcome === 'invalid_request',
  );
}
