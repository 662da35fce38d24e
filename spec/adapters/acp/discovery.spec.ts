import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { acpDiscovery } from '../../../src/adapters/acp/discovery.ts';
import type { AcpDiscoverySettings } from '../../../src/checkouts/settings.ts';
import { ask } from '../../e2e/ask.ts';
import { sharedCheckoutTestbed } from './testbed.ts';

const PATH = '/.well-known/acp.json';
const NOTHING: AcpDiscoverySettings = {
  documentationUrl: undefined,
  supportedCurrencies: undefined,
  supportedLocales: undefined,
  interventionTypes: undefined,
};
const textOf = (settings: Partial<AcpDiscoverySettings>): string =>
  Buffer.from(
    acpDiscovery({ publicBaseUrl: 'https://shop.example', mountPath: '/acp', settings: { ...NOTHING, ...settings } })
      .bytes,
  ).toString();

describe('the discovery document of the checkout service', () => {
  it('has the required members alone by default (acp 7)', () =>
    assert.equal(
      textOf({}),
      '{"protocol":{"name":"acp","version":"2026-04-17","supported_versions":["2026-04-17"]},' +
        '"api_base_url":"https://shop.example/acp","transports":["rest"],"capabilities":{"services":["checkout"]}}',
    ));

  it('has each optional member at its path, and only when it is configured', () => {
    const document = JSON.parse(
      textOf({
        documentationUrl: 'https://shop.example/docs',
        supportedCurrencies: ['usd', 'eur'],
        supportedLocales: ['en-US'],
        interventionTypes: ['3ds'],
      }),
    ) as Record<string, Record<string, unknown>>;
    assert.equal(document['protocol']?.['documentation_url'], 'https://shop.example/docs');
    assert.deepEqual(document['capabilities'], {
      services: ['checkout'],
      intervention_types: ['3ds'],
      supported_currencies: ['usd', 'eur'],
      supported_locales: ['en-US'],
    });
  });

  it('is not made when it would be wrong', () => {
    assert.throws(() => textOf({ supportedCurrencies: ['USD'] }), /supported_currencies/);
    assert.throws(() => textOf({ interventionTypes: ['sms'] }), /intervention_types/);
  });

  describe('as it is served', () => {
    const open = sharedCheckoutTestbed();
    const look = (method: string, headers: Record<string, string> = {}) =>
      ask(open.gateway.url, { method, path: PATH, headers });

    it('is public, and may be kept for an hour', async () => {
      const answer = await look('GET');
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['cache-control'], 'public, max-age=3600');
      assert.match(String(answer.headers['content-type']), /^application\/json/);
      assert.match(String(answer.headers.etag), /^"[^"]+"$/);
      assert.equal(
        (JSON.parse(answer.text) as Record<string, unknown>)['api_base_url'],
        `${open.gateway.config.merchant.publicBaseUrl}/acp`,
      );
    });
    it('is not sent again to a client that has it', async () => {
      const { etag = '' } = (await look('GET')).headers;
      const again = await look('GET', { 'if-none-match': etag });
      assert.deepEqual([again.status, again.text], [304, '']);
      assert.equal((await look('GET', { 'if-none-match': '"other"' })).status, 200);
    });
    it('has a head of its own', async () => {
      const answer = await look('HEAD');
      assert.deepEqual([answer.status, answer.text], [200, '']);
    });
    it('is read only', async () => {
      for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
        const answer = await look(method);
        assert.equal(answer.status, 405);
        assert.equal(answer.headers.allow, 'GET, HEAD');
      }
    });
  });
});
