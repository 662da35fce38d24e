import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Asked, askAcp, assertAcpError, CART, type CheckoutShop, openCheckoutShop } from './shop.ts';

/** Garbage of one byte too many: too large, no JSON and nothing that a schema allows. */
const TOO_LARGE = '{'.repeat(262_145);
const WRONG_KEY = 'with\ttab';

/** Everything that can be wrong, in the order of acp 13.1: each row puts one more thing right. */
const ROWS: readonly (readonly [what: string, status: number, code: string, asked: Asked])[] = [
  ['the route', 404, 'not_found', { method: 'PUT', path: '/carts' }],
  ['the method', 405, 'method_not_allowed', { method: 'PUT' }],
  ['the bearer token', 401, 'unauthorized', {}],
  ['the version', 400, 'unsupported_api_version', { headers: { authorization: undefined } }],
  ['the key', 400, 'idempotency_key_invalid', { headers: { 'api-version': undefined } }],
  ['the media type', 415, 'unsupported_media_type', { headers: { 'idempotency-key': undefined } }],
  ['the load', 503, 'service_unavailable', { headers: { 'content-type': undefined } }],
];

const WRONG: Readonly<Record<string, string>> = {
  authorization: 'Bearer nobody',
  'api-version': '2025-09-29',
  'idempotency-key': WRONG_KEY,
  'content-type': 'text/plain',
};

/** The request of a row: wrong in this and in all that is checked later. */
function wrongFrom(row: number): Asked {
  const put = Object.assign({}, ...ROWS.slice(0, row + 1).map(([, , , { headers = {} }]) => headers)) as object;
  const [, , , { method = 'POST', path = '/checkout_sessions' }] = ROWS[row] ?? ROWS[0] ?? assert.fail();
  const headers = Object.fromEntries(Object.entries(WRONG).filter(([name]) => !Object.keys(put).includes(name)));
  return { method, path, headers, body: TOO_LARGE };
}

describe('the order of the checks of a checkout call', () => {
  let open: CheckoutShop;
  let release: () => void = () => undefined;
  let running: Promise<unknown> | undefined;
  before(async () => {
    open = await openCheckoutShop({ acp: { limits: { maxInFlight: 1 } } });
    // The one place is taken: whatever is checked later must not be reached.
    open.merchant.misbehave({
      kind: 'wait',
      acts: 'after',
      until: new Promise((resolve) => {
        release = resolve;
      }),
    });
    const arrived = open.merchant.arrived();
    running = askAcp(open.shop.url);
    await arrived;
  });
  after(() => open.close());

  for (const [row, [what, status, code]] of ROWS.entries())
    it(`${what} is looked at before everything that comes later`, async () => {
      assertAcpError(await askAcp(open.shop.url, wrongFrom(row)), status, code);
    });

  it('the size is looked at before the JSON, the JSON before the schema, and the schema before the key is claimed', async () => {
    release();
    await running;
    const headers = { 'idempotency-key': 'one-key' };
    const ask = (body: string | typeof CART) => askAcp(open.shop.url, { headers, body });
    assertAcpError(await ask(TOO_LARGE), 413, 'request_body_too_large');
    assertAcpError(await ask('{"currency":7'), 400, 'invalid_json');
    assertAcpError(await ask('{"currency":7}'), 400, 'invalid_request_body');
    assert.equal((await ask(CART)).status, 201, 'nothing that was refused used the key up');
    assertAcpError(await ask('{"currency":7}'), 400, 'invalid_request_body');
    assertAcpError(await ask(JSON.stringify({ ...CART, currency: 'eur' })), 422, 'idempotency_conflict');
  });
});
