import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { diagnose } from '../../../src/cli/doctor.ts';
import { checkCatalogues } from '../../../tools/doctor/catalogues.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';
import { acg, acgOfCheckout } from '../../cli/acg.ts';
import {
  BASE_SEPOLIA,
  type ConfigObject,
  CURRENCY,
  merged,
  NO_CHAIN,
  worldConfig,
  writeConfig,
} from '../../support/config.ts';
import { openGateway, type TestGateway, type TestGatewayParts } from '../../support/gateway.ts';
import { startHostileFacilitator } from '../../support/hostile-facilitator.ts';
import { answerJson, serveHttp } from '../../support/http-server.ts';
import { sampleResources } from '../../support/resources.ts';
import { type SampleBackend, startSampleBackend } from '../../support/sample-backend.ts';

const REPORT = {
  expose: ['http', 'origin'],
  outputSchema: { type: 'object', properties: { city: { type: 'string' } }, additionalProperties: true },
  bazaar: { example: { city: 'Berlin' } },
};
const PRICES = { expose: ['http'], bazaar: { example: {}, output: 'city;price' } };
const NONE = Object.fromEntries(Object.keys(sampleResources(CURRENCY)).map((id) => [id, undefined]));
const RESOURCES = { ...NONE, cities: {}, market_report: REPORT, price_list: PRICES };
const SOUND: ConfigObject = { payments: { x402: BASE_SEPOLIA }, resources: RESOURCES };
const [BAZAAR, AGENTCASH, MPP] = ['bazaar', 'agentcash, x402scan', 'mpp directories'] as const;
type Findings = Readonly<Record<string, readonly string[]>>;
const listed = (count: number) => ({
  [BAZAAR]: [`PASS would list ${count} of 2`],
  [AGENTCASH]: [`PASS would list ${count} of 2`],
  [MPP]: [`PASS would list as x402, without an MPP challenge, ${count} of 2`],
});
const ALL = listed(2);
const ONE: Findings = listed(1);

const ends = new AsyncDisposableStack();
let folder: string;
let backend: SampleBackend;
let parts: TestGatewayParts;
let gateway: TestGateway;

before(async () => {
  folder = await temporaryDirectory(ends, 'acg-catalogues-');
  backend = ends.adopt(await startSampleBackend(), ({ stop }) => stop());
  const { url } = ends.adopt(await startHostileFacilitator(BASE_SEPOLIA.network), ({ stop }) => stop());
  parts = {
    ...{ chain: NO_CHAIN, backendUrl: backend.url, payTo: privateKeyToAddress(generatePrivateKey()) },
    ...{ facilitator: { mode: 'remote', url }, publicBaseUrl: 'http://127.0.0.1:8402', overrides: SOUND },
  };
  gateway = await opened(parts);
});
after(() => ends.disposeAsync());

async function opened(of: TestGatewayParts): Promise<TestGateway> {
  return ends.adopt(await openGateway(of), ({ close }) => close());
}

/** Writes the file of a gateway that listens there, and says where. */
async function configured(of = parts, url = gateway.url): Promise<string> {
  const path = join(folder, `${randomUUID()}.yaml`);
  const ports = { agents: Number(new URL(url).port), management: 2 };
  await writeConfig(path, worldConfig({ ...of, ports, storage: { sqlite: { path: ':memory:' } } }));
  return path;
}

/** The findings by listing, and where nothing listens. */
async function findingsOf(path: string): Promise<Findings> {
  const told: Record<string, string[]> = {};
  for (const { check, status, message, remedy } of await diagnose(path, {}, undefined, checkCatalogues)) {
    if (!(check in ALL) && !message.startsWith('nothing listens')) continue;
    told[check] ??= [];
    told[check].push(`${status} ${[message, remedy].filter(Boolean).join('; ')}`);
  }
  return told;
}

/** The same where the file has these changes, and the gateway too unless it runs another. */
async function found(changes: ConfigObject = {}, running = merged(SOUND, changes)): Promise<Findings> {
  gateway.reload(running);
  return findingsOf(await configured({ ...parts, overrides: merged(SOUND, changes) }));
}

const IN_PLACE = ['origin'];
const NO_DOCUMENT = ['WARN would list nothing: there is no /openapi.json; add openapi to publish'];
const UNASKED =
  'SKIP resources.price_list is sold in place alone: its 402 is asked for by GET and with bazaar.example only';
const NO_PRICE = (id: string, ...routes: readonly string[]) =>
  `WARN would list resources.${id}, but: ${routes.map((route) => `Paid route ${route} has no price hint`).join(', ')}; ` +
  'price it in the canonical USDC of a public network, which is shown as USD: TUSD is no currency of three letters';

const refused = (why: string, id = 'price_list'): string => `WARN would refuse resources.${id}: ${why}`;
/** Listings that tell this, and pass the other resource. */
const telling = (text: string, ...listings: readonly string[]): Findings =>
  Object.fromEntries(listings.map((listing) => [listing, [text, ...(ONE[listing] ?? [])]]));
/** x402scan tells this, and passes all. */
const warning = (...told: readonly string[]): Findings => ({ [AGENTCASH]: [...told, ...ALL[AGENTCASH]] });
const NO_SCHEMAS = 'Input schema is missing, Output schema is missing';
const EXAMPLE = 'set resources.price_list.bazaar.example';
const SHORTER = 'shorten resources.price_list.bazaar, its schemas or its description, or raise server.maxHeadBytes';

const LOCAL = { mode: 'local', url: undefined, auth: undefined, privateKey: NO_CHAIN.relayerKey };
const UNSEEN =
  'WARN would list nothing: it lists what its facilitator settles, and this gateway settles itself; ' +
  'set payments.x402.facilitator to a remote one that keeps a Bazaar';
const UNSOLD = 'GET /api/resources/price_list/invoke is answered 405, not 402; see running gateway, and GET /ready';

/** `running`: the configuration of the gateway, where it has not these changes. */
const CASES: readonly (readonly [what: string, changes: ConfigObject, differs: Findings, running?: ConfigObject])[] = [
  [
    'a resource without an example, which Bazaar and x402scan refuse',
    { resources: { price_list: { bazaar: undefined } } },
    {
      ...telling(refused(`its 402 does not say how it is called; ${EXAMPLE}`), BAZAAR),
      ...telling(refused(`${NO_SCHEMAS}; ${EXAMPLE}`), AGENTCASH),
    },
  ],
  [
    'an address without values for its path, which MPP directories ask as it stands',
    { resources: { market_report: { bazaar: undefined } } },
    Object.fromEntries(
      [
        [BAZAAR, 'its 402 does not say how it is called'],
        [AGENTCASH, NO_SCHEMAS],
        [MPP, 'it has no values for the path of its address'],
      ].map(([listing = '', why]) => [
        listing,
        [refused(`${why}; set resources.market_report.bazaar.example`, 'market_report'), ...(ONE[listing] ?? [])],
      ]),
    ),
  ],
  [
    'schemas that the head has no room for, without which Bazaar lists a resource',
    {
      merchant: { iconUrl: `https://shop.example/${'i'.repeat(200)}` },
      resources: { price_list: { description: 'd'.repeat(480), bazaar: { output: 'o'.repeat(1_100) } } },
    },
    telling(refused(`${NO_SCHEMAS}; ${SHORTER}`), AGENTCASH),
  ],
  [
    'a resource without an answer, which x402scan lists with a warning',
    { resources: { price_list: { bazaar: { output: undefined } } } },
    warning(
      'WARN would list resources.price_list, but: Output schema is missing; set resources.price_list.outputSchema',
    ),
  ],
  ['no OpenAPI document', { publish: ['llms'] }, { [AGENTCASH]: NO_DOCUMENT, [MPP]: NO_DOCUMENT }],
  [
    'no text for models',
    { publish: ['openapi'] },
    { [MPP]: [...ALL[MPP], 'WARN suggests a text for models: there is no /llms.txt; add llms to publish'] },
  ],
  [
    'a price that is in no currency',
    { payments: { x402: { asset: `0x${'12'.repeat(20)}` } } },
    warning(
      NO_PRICE('market_report', 'POST /api/resources/market_report/invoke', 'GET /reports/{city}'),
      NO_PRICE('price_list', 'POST /api/resources/price_list/invoke'),
    ),
  ],
  [
    'a sale in place that GET does not reach',
    {
      resources: { market_report: { expose: IN_PLACE }, price_list: { expose: IN_PLACE, backend: { method: 'POST' } } },
    },
    telling(UNASKED, BAZAAR, AGENTCASH, MPP),
  ],
  [
    'a resource that the gateway does not sell',
    {},
    telling(refused(UNSOLD), BAZAAR, AGENTCASH, MPP),
    { ...SOUND, resources: { ...RESOURCES, price_list: undefined } },
  ],
  [
    'payments that no facilitator sees',
    { payments: { x402: { rpcUrl: NO_CHAIN.rpcUrl, facilitator: LOCAL } } },
    { [BAZAAR]: [UNSEEN] },
    SOUND,
  ],
  ['nothing where the gateway serves one host alone', { server: { allowedHosts: ['shop.example'] } }, {}],
];

describe('acg doctor --catalogues', () => {
  it('finds nothing where every resource says how it is called, and neither pays nor calls the merchant', async () => {
    assert.deepEqual(await found(), ALL);
    const asked = () => backend.requests.map(({ method, url }) => `${method} ${url}`);
    const before = asked();
    await diagnose(await configured(), {});
    assert.deepEqual(asked(), [...before, ...before]);
    assert.deepEqual((await gateway.store.receipts.page({ limit: 10 })).receipts, []);
  });

  for (const [what, changes, differs, running] of CASES)
    it(`names ${what}`, async () => {
      assert.deepEqual(await found(changes, running), { ...ALL, ...differs });
    });

  it('names what the document of the merchant, which passes, does not describe', async () => {
    const paths = { '/own': { get: { security: [] } } };
    const document = { openapi: '3.1.0', info: { title: 'Own', version: '1' }, paths };
    const { url: backendUrl, stop } = await serveHttp(({ response }) => answerJson(response, 200, document));
    ends.defer(stop);
    const overrides = merged(SOUND, { backend: { passthrough: { enabled: true } } });
    const own = { ...parts, backendUrl, overrides };
    const missing = ['market_report', 'price_list'].map(
      (id) => `WARN would refuse resources.${id}: /openapi.json does not have it; add openapi to publish`,
    );
    const { url } = await opened(own);
    const told = await findingsOf(await configured(own, url));
    assert.deepEqual(told, { ...ALL, [AGENTCASH]: missing, [MPP]: missing });
  });

  it('fails where no gateway runs, and leaves the listings unchecked', async () => {
    const { 'running gateway': failed, ...listings } = await findingsOf(await configured(parts, 'http://127.0.0.1:1'));
    assert.match(String(failed), /^FAIL nothing listens at http:\/\/127\.0\.0\.1:1;/);
    const skipped = ['SKIP see running gateway'];
    assert.deepEqual(listings, { [BAZAAR]: skipped, [AGENTCASH]: skipped, [MPP]: skipped });
  });

  it('is an option of the package, and the image names the package', async () => {
    gateway.reload(SOUND);
    const words = ['doctor', '--catalogues', '--config', await configured()];
    const { lines } = await acgOfCheckout(folder, words);
    const { findings } = JSON.parse(lines.join('\n')) as { findings: readonly { check: string; status: string }[] };
    const sound = findings.filter(({ check, status }) => check in ALL && status === 'PASS');
    assert.equal(sound.length, 3);
    const { code, errors } = await acg(folder, words);
    assert.equal(code, 64);
    assert.match(errors, /doctor --catalogues is no command of the image: install the package/);
  });
});
