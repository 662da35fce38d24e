import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openTestbed, type Testbed } from '../support/testbed.ts';

const ORIGIN = 'https://dashboard.example:8443';

/** What a page may send (contract 3, CORS). */
const MAY_SEND =
  'content-type payment-signature agent-authorization idempotency-key x-request-id authorization a2a-version api-version ' +
  'request-id mcp-protocol-version mcp-method mcp-name a2a-extensions x-a2a-extensions last-event-id ' +
  'mcp-param-region';

describe('browsers', () => {
  let testbed: Testbed;
  before(async () => {
    const region = { type: 'string', 'x-mcp-header': 'Region' };
    const resources = { cities: { inputSchema: { type: 'object', properties: { region } } } };
    testbed = await openTestbed({ overrides: { server: { allowedOrigins: [ORIGIN] }, resources } });
  });
  after(() => testbed.close());

  const listing = (headers: Readonly<Record<string, string>>, method = 'GET') =>
    fetch(`${testbed.gateway.url}/api/resources`, { method, headers });

  it('a listed origin is named, exactly', async () => {
    const answer = await listing({ origin: ORIGIN });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('access-control-allow-origin'), ORIGIN);
    assert.equal(answer.headers.get('vary'), 'Origin');
    assert.equal(
      answer.headers.get('access-control-expose-headers'),
      'payment-required, payment-response, x-request-id, retry-after, idempotent-replayed, agent-authorization-receipt',
    );
    await answer.arrayBuffer();
  });

  it('its preflight is answered 204 with methods, headers and lifetime', async () => {
    const answer = await listing({ origin: ORIGIN, 'access-control-request-method': 'POST' }, 'OPTIONS');
    assert.equal(answer.status, 204);
    assert.equal(answer.headers.get('access-control-allow-methods'), 'GET, POST, OPTIONS');
    const allowed = new Set((answer.headers.get('access-control-allow-headers') ?? '').split(', '));
    for (const name of MAY_SEND.split(' ')) assert.ok(allowed.has(name), name);
    assert.equal(answer.headers.get('access-control-max-age'), '600');
    assert.equal(answer.headers.get('access-control-allow-credentials'), null);
  });

  const foreign = [
    'null',
    'https://dashboard.example',
    'http://dashboard.example:8443',
    `${ORIGIN}.evil.example`,
    'https://evil.example',
    `${ORIGIN}/`,
  ];
  for (const origin of foreign)
    it(`${origin} is refused without CORS headers`, async () => {
      const answer = await listing({ origin });
      assert.equal(answer.status, 403);
      assert.equal(answer.headers.get('access-control-allow-origin'), null);
      assert.equal(((await answer.json()) as { code: string }).code, 'FORBIDDEN');
    });

  it('an agent sends no origin and gets no CORS headers', async () => {
    const answer = await listing({});
    assert.equal(answer.headers.get('access-control-allow-origin'), null);
    await answer.arrayBuffer();
  });

  it('probes answer whatever the origin', async () => {
    const answer = await fetch(`${testbed.gateway.url}/health`, { headers: { origin: 'https://evil.example' } });
    assert.deepEqual(await answer.json(), { status: 'ok' });
  });
});
