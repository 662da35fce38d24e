import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AcpError } from '../../../src/adapters/acp/error.ts';
import { routeOf, withoutIds } from '../../../src/adapters/acp/routes.ts';

const codeOf = (method: string, path: string): string => {
  try {
    return routeOf(method, path).operation;
  } catch (thrown) {
    assert.ok(thrown instanceof AcpError);
    return thrown.code;
  }
};

describe('the routes of the checkout service', () => {
  const served = [
    ['POST', '/checkout_sessions', 'createCheckoutSession', undefined],
    ['POST', '/checkout_sessions/cs_1', 'updateCheckoutSession', 'cs_1'],
    ['GET', '/checkout_sessions/cs_1', 'getCheckoutSession', 'cs_1'],
    ['POST', '/checkout_sessions/cs_1/complete', 'completeCheckoutSession', 'cs_1'],
    ['POST', '/checkout_sessions/cs_1/cancel', 'cancelCheckoutSession', 'cs_1'],
    // Ids that are names of routes are ids all the same.
    ['GET', '/checkout_sessions/complete', 'getCheckoutSession', 'complete'],
    ['POST', '/checkout_sessions/cancel/cancel', 'cancelCheckoutSession', 'cancel'],
  ] as const;
  for (const [method, path, operation, sessionId] of served)
    it(`${method} ${path} is ${operation}`, () => assert.deepEqual(routeOf(method, path), { operation, sessionId }));

  const ids = [
    ['gid%3A%2F%2Fshop%2FCheckout%2F1', 'gid://shop/Checkout/1'],
    ['gid:%2f%2fshop%2fCheckout%2f1', 'gid://shop/Checkout/1'],
    ['a%252Fb', 'a%2Fb'],
    ['%C3%A9t%C3%A9', 'été'],
    ['a.b', 'a.b'],
    ['...', '...'],
    ["~!$&'()*+,;=:@-_", "~!$&'()*+,;=:@-_"],
    ['x'.repeat(256), 'x'.repeat(256)],
    [encodeURIComponent('🧦'.repeat(256)), '🧦'.repeat(256)],
  ] as const;
  for (const [segment, id] of ids)
    it(`reads the session id of ${segment.slice(0, 40)} once`, () =>
      assert.equal(routeOf('GET', `/checkout_sessions/${segment}`).sessionId, id));

  const nowhere = [
    '',
    '/',
    '/checkout_sessions/',
    '/checkout_sessions//complete',
    '/checkout_sessions/cs_1/',
    '/checkout_sessions/cs_1/complete/',
    '/checkout_sessions/cs_1/refund',
    '//checkout_sessions',
    '/Checkout_Sessions',
    '/checkout%5Fsessions',
    '/%63heckout_sessions',
    '/checkout_sessions/cs_1/%63omplete',
    '/checkout_sessions/.',
    '/checkout_sessions/..',
    '/checkout_sessions/%2e%2e',
    '/checkout_sessions/%2E',
    '/checkout_sessions/a%2F..%2Fb',
    '/checkout_sessions/a%2f%2e%2e%2fb',
    '/checkout_sessions/%2Fb',
    '/checkout_sessions/b%2F',
    '/checkout_sessions/a%2F%2Fb',
    '/checkout_sessions/a%2F..%2Fb%3A%2F%2Fc',
    '/checkout_sessions/gid%3A%2F%2F',
    '/checkout_sessions/gid%3A%2F%2F%2Fx',
    '/checkout_sessions/a/../b',
    '/checkout_sessions/a%00b',
    '/checkout_sessions/a%0Ab',
    '/checkout_sessions/a%7Fb',
    '/checkout_sessions/a%C2%85b',
    '/checkout_sessions/%ff',
    '/checkout_sessions/%C0%AE',
    '/checkout_sessions/%zz',
    '/checkout_sessions/%2',
    '/checkout_sessions/a#b',
    '/checkout_sessions/a\\b',
    '/checkout_sessions/a"b',
    '/checkout_sessions/\u00e9',
    `/checkout_sessions/${'x'.repeat(257)}`,
  ];
  for (const path of nowhere)
    it(`has nothing at ${JSON.stringify(path.slice(0, 50))}, whatever the method`, () => {
      for (const method of ['GET', 'POST', 'PUT']) assert.equal(codeOf(method, path), 'not_found');
    });

  const refused = [
    ['GET', '/checkout_sessions', 'POST'],
    ['DELETE', '/checkout_sessions/cs_1', 'POST, GET'],
    ['HEAD', '/checkout_sessions/cs_1', 'POST, GET'],
    ['OPTIONS', '/checkout_sessions/cs_1', 'POST, GET'],
    ['GET', '/checkout_sessions/cs_1/complete', 'POST'],
    ['get', '/checkout_sessions/cs_1/cancel', 'POST'],
  ] as const;
  for (const [method, path, allow] of refused)
    it(`refuses ${method} ${path} with the methods of the path`, () =>
      assert.throws(
        () => routeOf(method, path),
        (error) => error instanceof AcpError && error.code === 'method_not_allowed' && error.headers['allow'] === allow,
      ));

  it('shows a path without ids and other text of callers', () => {
    assert.equal(withoutIds('/checkout_sessions/cs_1/complete'), '/checkout_sessions/*/complete');
    assert.equal(withoutIds('/checkout_sessions/cs_1/../token'), '/checkout_sessions/*/*/*');
  });
});
