import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Response } from 'supertest';
import { answeredMethods, METHODS, pathOf, ROUTES, type Route } from './table.ts';
import { client, refusal, refusalVary, type Sent, send, sharedRoutes } from './world.ts';

/** Rows of one path have the same `Allow`. */
const byPath = Map.groupBy(ROUTES, ({ app, path }) => `${app} ${path}`);
const titleOf = ({ app, method, path }: Route): string => `${method} ${path} (${app})`;

/** What every answer of the apps has, and what none has. */
function assertCommon({ headers }: Response): void {
  assert.match(String(headers['x-request-id']), /^(?:req|mcp|a2a|acp)_[0-9a-f-]{36}$/);
  for (const name of ['server', 'x-powered-by', 'set-cookie', 'access-control-allow-origin'])
    assert.equal(headers[name], undefined, name);
}

const REFUSALS = {
  401: { code: 'UNAUTHORIZED', checkoutCode: 'unauthorized' },
  404: { code: 'NOT_FOUND', checkoutCode: 'not_found' },
  405: { code: 'METHOD_NOT_ALLOWED', checkoutCode: 'method_not_allowed' },
} as const;

/** A refusal without validators, in the words of the path; of a HEAD there is the head alone. */
function assertRefused(answer: Response, method: string, path: string, status: keyof typeof REFUSALS): void {
  const { headers, text } = answer;
  assert.equal(answer.status, status, `${method} ${path}: ${text}`);
  assert.deepEqual([headers['etag'], headers['last-modified']], [undefined, undefined]);
  assert.equal(headers['cache-control'], 'no-store');
  if (method === 'HEAD') assert.equal(text, undefined);
  else refusal(path, { status, ...REFUSALS[status] })(answer);
}

describe('the table of routes', () => {
  const world = sharedRoutes();
  const ask = async (route: Route, method: string, sent: Sent = route.sent()): Promise<Response> => {
    const path = await pathOf(route, world().agents);
    const answered = method === route.method || method === 'HEAD';
    return send(world()[route.app], method, path, sent)
      .expect(assertCommon)
      .expect(({ headers, status }) => {
        const expected = answered ? route.headers['vary'] : undefined;
        assert.equal(headers['vary'], status in REFUSALS ? refusalVary(path) : expected);
      });
  };

  for (const route of ROUTES) {
    it(`${titleOf(route)} is ${route.status}, with its type and its headers for caches`, async () => {
      const { status, headers, text } = await ask(route, route.method);
      assert.equal(status, route.status, text);
      assert.ok(text.length > 0);
      const expected = { 'content-type': route.mediaType, ...route.headers };
      for (const [name, value] of Object.entries(expected))
        if (typeof value === 'string') assert.equal(headers[name], value);
        else assert.match(String(headers[name]), value, name);
      // An answer of the backend has its own headers.
      const own = status !== 200 || (route.matchedBy !== 'address' && !route.path.endsWith('/invoke'));
      if (own) assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['cache-control'], route.cacheControl);
      if (route.validators === 'none') assert.equal(headers['etag'], undefined);
      else assert.match(String(headers['etag']), /^"[\w-]{27}"$/);
      assert.equal(typeof headers['last-modified'] === 'string', route.validators === 'etag and date');
    });

    if (route.validators !== 'none')
      it(`${titleOf(route)} is 304 without a body to a reader that has it`, async () => {
        const { etag = '', 'last-modified': date = '' } = (await ask(route, 'GET')).headers;
        const fresh = [etag, `W/${etag}`, `"other", ${etag}`].map((tag) => ({ 'if-none-match': tag }));
        const dated = route.validators === 'etag and date' ? [{ 'if-modified-since': date }] : [];
        for (const headers of [...fresh, ...dated]) {
          const answer = await ask(route, 'GET', { headers });
          assert.deepEqual([answer.status, answer.text, answer.headers['etag']], [304, '', etag]);
          assert.equal(answer.headers['cache-control'], route.cacheControl);
        }
        assert.equal((await ask(route, 'GET', { headers: { 'if-none-match': '"other"' } })).status, 200);
      });

    if (route.method === 'GET' && route.allow.includes('HEAD'))
      it(`HEAD of ${titleOf(route)} has the head of GET alone`, async () => {
        const [get, head] = [await ask(route, 'GET'), await ask(route, 'HEAD')];
        assert.deepEqual([head.status, head.text], [get.status, undefined]);
        const fixed = route.validators === 'none' ? [] : ['content-length'];
        for (const name of ['content-type', 'cache-control', 'etag', 'last-modified', ...fixed])
          assert.equal(head.headers[name], get.headers[name], name);
      });

    if (route.allow.includes('OPTIONS'))
      it(`OPTIONS of ${titleOf(route)} is 204 with its methods, and asks the backend nothing`, async () => {
        world().backend.forget();
        const { status, headers, text } = await ask(route, 'OPTIONS', {});
        assert.deepEqual([status, text, headers['allow']], [204, '', route.allow]);
        for (const name of ['content-type', 'cache-control', 'etag', 'payment-required'])
          assert.equal(headers[name], undefined, name);
        assert.deepEqual(world().backend.requests, []);
      });

    if (route.auth !== 'none')
      it(`${titleOf(route)} is 401 without its token, and with another one`, async () => {
        const { authorization: _right, ...rest } = route.sent().headers ?? {};
        const others = { ...rest, ...client(titleOf(route)) };
        for (const token of [undefined, 'Bearer wrong', 'Basic d3Jvbmc6d3Jvbmc=']) {
          const headers = token === undefined ? others : { ...others, authorization: token };
          const answer = await ask(route, route.method, { ...route.sent(), headers });
          assertRefused(answer, route.method, route.path, 401);
          assert.match(String(answer.headers['www-authenticate']), /^Bearer(?: realm="acp")?$/);
        }
      });
    else
      it(`${titleOf(route)} asks for no token`, () => assert.equal(route.sent().headers?.['authorization'], undefined));
  }

  for (const rows of byPath.values()) {
    const [route] = rows;
    if (route === undefined) continue;
    const served = answeredMethods(rows);
    const refused = METHODS.filter((method) => !served.includes(method));
    it(`${route.path} (${route.app}) refuses ${refused.join(', ')}, and allows ${route.allow}`, async () => {
      const { headers = {} } = route.sent();
      for (const method of refused) {
        const answer = await ask(route, method, { headers });
        assert.equal(answer.headers['allow'], route.allow, method);
        assertRefused(answer, method, route.path, 405);
      }
    });

    it(`${route.path} (${route.app}) has one spelling`, async () => {
      const path = await pathOf(route, world().agents);
      const lastSlash = path.lastIndexOf('/');
      const spelled = [
        `${path}/`,
        `/${path}`,
        path.toUpperCase(),
        `/%${path.charCodeAt(1).toString(16)}${path.slice(2)}`,
        // Behind a session these would be the id of another one.
        ...(path === route.path ? [`${path}%2F`] : []),
        // Behind a parameter these would be a part of its value.
        ...(path === route.path && !/:\w+$/.test(route.pattern) ? [`${path};x=1`] : []),
        ...(path === route.path && !/\}$|:\w+$/.test(route.pattern) ? [`${path}%20`] : []),
        ...(path === route.path && lastSlash > 0 ? [`${path.slice(0, lastSlash)}%2f${path.slice(lastSlash + 1)}`] : []),
      ].filter((other) => !byPath.has(`${route.app} ${other}`));
      for (const other of spelled)
        for (const method of ['GET', 'POST', 'HEAD']) {
          const sent = method === route.method ? route.sent() : {};
          const answer = await send(world()[route.app], method, other, sent)
            .expect(assertCommon)
            .expect(({ headers }) => assert.equal(headers['vary'], refusalVary(other)));
          assertRefused(answer, method, other, 404);
        }
    });
  }
});
