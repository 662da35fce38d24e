import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { exchange, head } from '../../server/http/raw.ts';
import { CART, type CheckoutShop, openCheckoutShop, rightHeaders } from './shop.ts';

/** What stands behind a refused call on its connection. */
describe('the connection of a refused checkout call', () => {
  let open: CheckoutShop;
  before(async () => {
    open = await openCheckoutShop();
  });
  after(() => open.close());

  const create = (body: string, changes: Readonly<Record<string, string | undefined>> = {}): string => {
    const length = String(Buffer.byteLength(body));
    const headers = { host: 'shop', ...rightHeaders('POST', { 'content-length': length, ...changes }) };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    return `${head(['POST /acp/checkout_sessions HTTP/1.1', ...lines])}${body}`;
  };
  const cart = JSON.stringify(CART);
  const last = create(cart, { connection: 'close' });
  const statuses = async (...requests: readonly string[]): Promise<readonly string[]> => {
    open.merchant.forget();
    const answer = await exchange(open.shop.url, [requests.join('')]);
    return [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status = '']) => status);
  };

  const unread: Readonly<Record<string, Readonly<Record<string, string | undefined>>>> = {
    'the token': { authorization: undefined },
    'the version': { 'api-version': undefined },
    'the key': { 'idempotency-key': undefined },
    'the media type': { 'content-type': 'text/plain' },
  };
  for (const [what, changes] of Object.entries(unread))
    it(`ends where ${what} is at fault: a body that nobody read is no next call`, async () => {
      const [refused = '', ...others] = await statuses(create(last, changes), last);
      assert.match(refused, /^4\d\d$/);
      assert.deepEqual(others, []);
      assert.equal(open.merchant.calls.length, 0);
    });

  it('stays where the body was read, and the next call is served', async () => {
    assert.deepEqual(await statuses(create('{'), create('{}'), last), ['400', '400', '201']);
    assert.equal(open.merchant.calls.length, 1);
  });

  it('stays where there is no body', async () => {
    assert.deepEqual(await statuses(create('', { authorization: undefined }), last), ['401', '201']);
  });
});
