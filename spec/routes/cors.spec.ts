import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Response } from 'supertest';
import { SESSION_PLACE } from '../../src/checkouts/operations.ts';
import { pathOf, ROUTES, type Route } from './table.ts';
import { refusal, refusalVary, type Sent, send, sharedRoutes } from './world.ts';

const LISTED = 'https://console.example';
const FORBIDDEN = { status: 403, code: 'FORBIDDEN', checkoutCode: 'forbidden' };
const PREFLIGHT = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'payment-signature' };

/** Their answers need no check of the origin: nothing of theirs is secret or costs anything. */
const isOpen = ({ app, audience, path }: Route): boolean =>
  app === 'management' || audience === 'probes' || path.startsWith('/console');
/** Hooks refuse pages of every origin: see `management.spec.ts`. */
const ofPages = ROUTES.filter(({ audience }) => audience !== 'hooks');
const guarded = ofPages.filter((route) => !isOpen(route));

/** The names in a header that is a list. */
const names = (answer: Response, header: string): readonly string[] => String(answer.headers[header]).split(', ');

describe('pages of browsers', () => {
  const world = sharedRoutes({ server: { allowedOrigins: [LISTED] } });
  const ask = async (route: Route, method: string, more: Sent['headers']): Promise<Response> => {
    const { headers, ...sent } = route.sent();
    const path = await pathOf(route, world().agents);
    return send(world()[route.app], method, path, {
      ...(method === route.method ? sent : {}),
      headers: { ...headers, ...more },
    });
  };

  for (const route of guarded) {
    const title = `${route.method} ${route.path}`;
    it(`${title}: of a listed origin are answered, may read the payment headers, and send no credentials`, async () => {
      const answer = await ask(route, route.method, { origin: LISTED });
      assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [route.status, LISTED]);
      assert.equal(answer.headers['vary'], ['Origin', route.headers['vary'] ?? []].flat().join(', '));
      const exposed = names(answer, 'access-control-expose-headers');
      for (const name of ['payment-required', 'payment-response', 'x-request-id', 'retry-after', 'idempotent-replayed'])
        assert.ok(exposed.includes(name), name);
      assert.equal(answer.headers['access-control-allow-credentials'], undefined);
    });

    it(`${title}: may ask before, whichever method the route has`, async () => {
      const answer = await ask(route, 'OPTIONS', { ...PREFLIGHT, origin: LISTED });
      assert.deepEqual([answer.status, answer.text], [204, '']);
      assert.equal(answer.headers['access-control-allow-origin'], LISTED);
      const inPlace = route.matchedBy === 'address';
      assert.equal(answer.headers['access-control-allow-methods'], inPlace ? route.allow : 'GET, POST, OPTIONS');
      assert.equal(answer.headers['access-control-max-age'], '600');
      const allowed = names(answer, 'access-control-allow-headers');
      for (const name of [
        ...['content-type', 'payment-signature', 'agent-authorization', 'idempotency-key', 'x-request-id'],
        ...['authorization', 'a2a-version', 'api-version', 'request-id', 'mcp-protocol-version', 'last-event-id'],
        ...(inPlace
          ? ['if-none-match', 'if-modified-since', 'range', 'if-range', 'if-match', 'if-unmodified-since']
          : []),
      ])
        assert.ok(allowed.includes(name), name);
    });

    it(`${title}: of any other origin are 403 without CORS headers, also when they ask before`, async () => {
      for (const origin of ['https://evil.example', 'null', `${LISTED}/`, `${LISTED}.evil.example`])
        for (const [method, more] of [
          [route.method, {}],
          ['OPTIONS', PREFLIGHT],
        ] as const) {
          const answer = await ask(route, method, { ...more, origin });
          refusal(route.path, FORBIDDEN)(answer);
          assert.doesNotMatch(Object.keys(answer.headers).join(), /access-control/);
          assert.equal(answer.headers['vary'], ['Origin', refusalVary(route.path) ?? []].flat().join(', '));
        }
    });

    it(`${title}: of the gateway's own origin are answered without CORS headers`, async () => {
      const { origin } = new URL(world().config.merchant.publicBaseUrl);
      const answer = await ask(route, route.method, { origin });
      assert.equal(answer.status, route.status);
      assert.doesNotMatch(Object.keys(answer.headers).join(), /access-control/);
    });
  }

  for (const route of ofPages.filter(isOpen))
    it(`${route.method} ${route.path} (${route.app}): of any origin are answered, and get no CORS headers`, async () => {
      for (const origin of [LISTED, 'http://localhost:9999']) {
        const answer = await ask(route, route.method, { origin });
        assert.equal(answer.status, route.status);
        assert.doesNotMatch(Object.keys(answer.headers).join(), /access-control/);
      }
    });

  it('that ask before at a path that is no route get the same answer: it tells nothing of the routes', async () => {
    const sent = { headers: { ...PREFLIGHT, origin: LISTED } };
    await send(world().agents, 'OPTIONS', '/nowhere', sent).expect(204);
  });

  it('that only send OPTIONS get what every caller gets', async () => {
    const answer = await send(world().agents, 'OPTIONS', '/api/resources', { headers: { origin: LISTED } });
    assert.deepEqual([answer.status, answer.headers['allow']], [405, 'GET, HEAD']);
  });
});

describe('pages at an address whose backend reads headers of the caller', () => {
  const world = sharedRoutes({
    backend: { originHeaders: ['accept', 'authorization', 'cookie'] },
    server: { allowedOrigins: [LISTED] },
  });

  it('may send them, but for the cookie, which they never send', async () => {
    const headers = { origin: LISTED, 'access-control-request-method': 'GET' };
    const answer = await send(world().agents, 'OPTIONS', '/reports/Berlin', { headers }).expect(204);
    const allowed = names(answer, 'access-control-allow-headers');
    assert.deepEqual(
      ['accept', 'authorization', 'cookie'].map((name) => allowed.includes(name)),
      [true, true, false],
    );
    assert.equal(answer.headers['access-control-allow-credentials'], undefined);
  });
});

/** A probe sends the address of the pod as its host. */
const isForProbes = ({ app, audience }: Route): boolean => app === 'management' || audience === 'probes';

describe('the list of hosts', () => {
  const world = sharedRoutes({ server: { allowedHosts: ['shop.example'] } });

  for (const route of ROUTES)
    it(`${route.method} ${route.path} (${route.app}) is ${isForProbes(route) ? 'answered to' : '403 for'} any other`, async () => {
      const { headers, ...sent } = route.sent();
      const ask = (host: string) =>
        send(world()[route.app], route.method, route.path, { ...sent, headers: { ...headers, host } });
      const other = await ask('10.0.0.7:8402');
      if (isForProbes(route)) assert.equal(other.status, route.status);
      else refusal(route.path, FORBIDDEN)(other);
      // Hooks are asked by address alone, whatever hosts are listed.
      const listed = route.audience === 'hooks' ? '127.0.0.1' : 'SHOP.example';
      if (!route.path.includes(SESSION_PLACE)) assert.equal((await ask(listed)).status, route.status);
    });
});
