import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  checkEndpointSchema,
  checkL2ForOpenAPI,
  checkL4ForOpenAPI,
  discoverOriginSchema,
  getOpenAPI,
  getWarningsFor402Body,
  getWarningsForL2,
  getWarningsForL4,
  getWarningsForOpenAPI,
  validatePaymentRequiredDetailed,
} from '@agentcash/discovery';
import { decodePaymentRequiredHeader } from '@x402/core/http';
import { BASE_SEPOLIA, NO_CHAIN } from '../support/config.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { type HostileFacilitator, startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { callInPlace } from '../support/in-place.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';

const UNIT = { pointer: '/cities', min: '0.02', max: '0.5' };
const BERLIN = { city: 'Berlin' } as const;

/** A catalogue of paid services, whose own code finds and judges what a gateway sells. */
describe('a catalogue of paid services', () => {
  let backend: SampleBackend;
  let facilitator: HostileFacilitator;
  let gateway: TestGateway;

  before(async () => {
    backend = await startSampleBackend();
    facilitator = await startHostileFacilitator(BASE_SEPOLIA.network);
    gateway = await openGateway({
      chain: NO_CHAIN,
      backendUrl: backend.url,
      facilitator: { mode: 'remote', url: facilitator.url },
      overrides: {
        payments: { x402: BASE_SEPOLIA },
        protocols: { mcp: { enabled: true } },
        resources: {
          market_report: {
            expose: ['http', 'mcp', 'origin'],
            outputSchema: { type: 'object', properties: { city: { type: 'string' } }, additionalProperties: true },
            bazaar: { example: BERLIN },
          },
          reports: {
            name: 'Reports',
            inputSchema: {
              type: 'object',
              properties: { cities: { type: 'array', items: { type: 'string' }, maxItems: 100 } },
              required: ['cities'],
            },
            backend: { method: 'POST', path: '/reports' },
            pricing: { type: 'fixed', amount: '0.01', currency: 'USDC', by: { unit: UNIT } },
          },
        },
      },
    });
  });
  after(async () => {
    await gateway.close();
    await Promise.all([backend.stop(), facilitator.stop()]);
  });

  it('finds what is sold, with its price', async () => {
    const found = await discoverOriginSchema({ target: gateway.url });
    assert.ok(found.found, JSON.stringify(found));
    const report = found.endpoints.find(({ path }) => path === '/api/resources/market_report/invoke');
    assert.partialDeepStrictEqual(report, { method: 'POST', authMode: 'paid', protocols: ['x402'] });
    assert.match(report?.price ?? '', /0\.01/);
    const many = found.endpoints.find(({ path }) => path === '/api/resources/reports/invoke');
    assert.match(many?.price ?? '', /0\.02.*0\.5/);
  });

  it('has nothing against the documents', async () => {
    const openApi = (await getOpenAPI(gateway.url))._unsafeUnwrap();
    assert.ok(openApi !== null && 'routes' in openApi, JSON.stringify(openApi));
    const warnings = [
      ...getWarningsForOpenAPI(openApi),
      ...getWarningsForL2(checkL2ForOpenAPI(openApi)),
      ...getWarningsForL4(checkL4ForOpenAPI(openApi)),
    ];
    // The sample sells more than a small service would.
    assert.deepEqual(
      warnings.filter(({ severity, code }) => severity !== 'info' && code !== 'L2_ROUTE_COUNT_HIGH'),
      [],
    );
  });

  it('is answered with the price by a probe without a body', async () => {
    const url = `${gateway.url}/api/resources/market_report/invoke`;
    const checked = await checkEndpointSchema({ url, probe: true });
    assert.ok(checked.found, JSON.stringify(checked));
    const post = checked.advisories.find(({ method }) => method === 'POST');
    assert.equal(post?.paymentOptions?.[0]?.protocol, 'x402');
  });

  it('has nothing against the 402 of a resource that is listed, at its invoke URL and its own address', async () => {
    const invoked = await gateway.invoke('market_report', BERLIN);
    const inPlace = await callInPlace(gateway, 'market_report', BERLIN);
    for (const answer of [invoked, inPlace]) {
      const offered = decodePaymentRequiredHeader(answer.headers.get('payment-required') ?? '');
      assert.deepEqual(getWarningsFor402Body(offered), []);
      assert.equal(validatePaymentRequiredDetailed(offered).valid, true);
    }
  });
});
