import assert from 'node:assert/strict';
import { once } from 'node:events';
import { before, describe, it } from 'node:test';
import { closeOf, dial, exchange, head, received } from '../../server/http/raw.ts';
import {
  type Asked,
  askAcp,
  assertAcpError,
  CART,
  type Headers,
  rightHeaders,
  sharedCheckoutTestbed,
} from './testbed.ts';

/** One byte too many, no JSON, and nothing that a schema allows. */
const TOO_LARGE = '{'.repeat(262_145);
const WRONG_KEY = 'with\ttab';

/** Everything that can be wrong, in the order of acp 13.1: each row makes one more thing right. */
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
  authorization: 'Bearer wrong',
  'api-version': '2025-09-29',
  'idempotency-key': WRONG_KEY,
  'content-type': 'text/plain',
};

/** The request of a row: wrong in this and in all later checks. */
function wrongFrom(row: number): Asked {
  const put = Object.assign({}, ...ROWS.slice(0, row + 1).map(([, , , { headers = {} }]) => headers)) as object;
  const [, , , { method = 'POST', path = '/checkout_sessions' }] = ROWS[row] ?? ROWS[0] ?? assert.fail();
  const headers = Object.fromEntries(Object.entries(WRONG).filter(([name]) => !Object.keys(put).includes(name)));
  return { method, path, headers, body: TOO_LARGE };
}

describe('the order of the checks of a checkout call', () => {
  const open = sharedCheckoutTestbed({ acp: { limits: { maxInFlight: 1 } } });
  let release: () => void = () => undefined;
  let running: Promise<unknown> | undefined;
  before(async () => {
    // The one slot is taken: later checks must not be reached.
    open.backend.misbehave({
      kind: 'wait',
      acts: 'after',
      until: new Promise((resolve) => {
        release = resolve;
      }),
    });
    const arrived = open.backend.arrived();
    running = askAcp(open.gateway.url);
    await arrived;
  });

  for (const [row, [what, status, code]] of ROWS.entries())
    it(`${what} is checked before everything that follows`, async () => {
      assertAcpError(await askAcp(open.gateway.url, wrongFrom(row)), status, code);
    });

  it('the size is checked before the JSON, the JSON before the schema, and the schema before the key is claimed', async () => {
    release();
    await running;
    const headers = { 'idempotency-key': 'one-key' };
    const ask = (body: string | typeof CART) => askAcp(open.gateway.url, { headers, body });
    assertAcpError(await ask(TOO_LARGE), 413, 'request_body_too_large');
    assertAcpError(await ask('{"currency":7'), 400, 'invalid_json');
    assertAcpError(await ask('{"currency":7}'), 400, 'invalid_request_body');
    assert.equal((await ask(CART)).status, 201, 'refused calls do not use the key');
    assertAcpError(await ask('{"currency":7}'), 400, 'invalid_request_body');
    assertAcpError(await ask(JSON.stringify({ ...CART, currency: 'eur' })), 422, 'idempotency_conflict');
  });
});

describe('the connection of a refused checkout call', () => {
  const open = sharedCheckoutTestbed();

  const create = (body: string, changes: Headers = {}): string => {
    const length = String(Buffer.byteLength(body));
    const headers = { host: 'shop', ...rightHeaders('POST', { 'content-length': length, ...changes }) };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    return `${head(['POST /acp/checkout_sessions HTTP/1.1', ...lines])}${body}`;
  };
  const cart = JSON.stringify(CART);
  const last = create(cart, { connection: 'close' });
  const statuses = async (...requests: readonly string[]): Promise<readonly string[]> => {
    open.backend.forget();
    const answer = await exchange(open.gateway.url, [requests.join('')]);
    return [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status = '']) => status);
  };

  const unread: Readonly<Record<string, Headers>> = {
    'the token': { authorization: undefined },
    'the version': { 'api-version': undefined },
    'the key': { 'idempotency-key': undefined },
    'the media type': { 'content-type': 'text/plain' },
  };
  for (const [what, changes] of Object.entries(unread))
    it(`ends where ${what} is wrong: a body that was not read is no next call`, async () => {
      open.backend.forget();
      const socket = await dial(open.gateway.url);
      const answer = received(socket);
      socket.write(create(last, changes).slice(0, -last.length));
      await once(socket, 'data');
      socket.write(last);
      await closeOf(socket);
      assert.match(answer(), /^HTTP\/1\.1 4\d\d /);
      assert.equal(answer().match(/HTTP\/1\.1 /g)?.length, 1);
      assert.equal(open.backend.calls.length, 0);
    });

  it('stays where the body was read, and the next call is served', async () => {
    assert.deepEqual(await statuses(create('{'), create('{}'), last), ['400', '400', '201']);
    assert.equal(open.backend.calls.length, 1);
  });

  it('stays where there is no body', async () => {
    assert.deepEqual(await statuses(create('', { authorization: undefined }), last), ['401', '201']);
  });
});
