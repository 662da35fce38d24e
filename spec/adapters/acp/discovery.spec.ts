import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { acpDiscovery } from '../../../src/adapters/acp/discovery.ts';
import type { AcpDiscoverySettings } from '../../../src/checkouts/settings.ts';

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
});
