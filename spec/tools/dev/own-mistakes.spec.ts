import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parseConfigText } from '../../../src/config/document/parse.ts';
import { parseConfig } from '../../../src/config/load.ts';
import { LOCAL_CHAIN_ID, LOCAL_TOKEN, TEST_BUYER } from '../../../src/payments/pricing/networks.ts';
import { ConfigError } from '../../../src/problems/problem.ts';
import { LOCAL_PAYEE, localized, ownMistakes } from '../../../tools/local-world/localized.ts';

type Env = Readonly<Record<string, string>>;

const PARTS = {
  chain: { rpcUrl: 'http://127.0.0.1:1', chainId: LOCAL_CHAIN_ID, token: LOCAL_TOKEN, relayerKey: TEST_BUYER.key },
  ports: { agents: 8402, management: 8403 },
  adminToken: 'a-token-of-this-world',
  payTo: LOCAL_PAYEE,
  databasePath: ':memory:',
  sealingKey: Buffer.alloc(32, 3).toString('base64'),
};

/** Paths that are refused of a document, `own`: as it stands; `later`: made local. */
function refused(text: string, env: Env = {}) {
  const document = parseConfigText(text);
  const brought = localized(document, PARTS);
  const own = ownMistakes(document, brought, env).map(({ path }) => path);
  try {
    parseConfig(JSON.stringify(brought), env);
    return { own, later: [] };
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return { own, later: error.problems.map(({ path }) => path) };
  }
}

/** One priced resource, with some sections. */
function shop(sections: string, pricing = '"$0.01"'): string {
  const merchant = sections.includes('merchant:') ? '' : 'merchant: { name: Shop }\n';
  return `version: 1
${merchant}backend: { baseUrl: "http://127.0.0.1:3000" }
resources: { report: { backend: { method: GET, path: /report }, pricing: ${pricing} } }
${sections}
`;
}

const x402 = (members: string): string => `payments: { x402: { network: base-sepolia, ${members} } }`;
const facilitator = (members: string): string => x402(`facilitator: { mode: remote, ${members} }`);

describe('what a configuration says itself, in a local world', () => {
  const REFUSED: readonly (readonly [sections: string, paths: readonly string[], env?: Env])[] = [
    ['payments: { x402: { network: bse } }', ['payments.x402.network']],
    [x402('payTo: "0x12"'), ['payments.x402.payTo']],
    [x402(`payTo: "\${PAY-TO}"`), ['payments.x402.payTo']],
    [x402(`payTo: "\${PAY_TO}"`), ['payments.x402.payTo'], { PAY_TO: '0x12' }],
    [x402('payto: "0x12"'), ['payments.x402.payto']],
    [x402('payto:'), ['payments.x402.payto']],
    [x402('confirmations: 0'), ['payments.x402.confirmations']],
    [x402('facilitator: { mode: remot }'), ['payments.x402.facilitator.mode']],
    [facilitator('url: "ftp://a.example"'), ['payments.x402.facilitator.url']],
    [facilitator('url: "https://a.example", fallbacks: [{ url: a }]'), ['payments.x402.facilitator.fallbacks[0].url']],
    [
      'payments: { x402: { network: base, facilitator: { mode: remote, url: "http://a.example" }, rpcUrl: "https://b.example" } }',
      ['payments.x402.facilitator.url'],
    ],
    ['server: { allowedHosts: ["a b"] }', ['server.allowedHosts[0]']],
    ['server: { port: 99999 }', ['server.port']],
    [`server: { port: "\${PORT}" }`, ['server.port'], { PORT: 'many' }],
    ['management: { port: 99999 }', ['management.port']],
    ['management: { port: 8402 }', ['management.port']],
    ['storage: { redis: { url: "http://x" } }', ['storage.redis.url']],
    [`storage: { redis: { url: "\${REDIS_URL}", tsl: 1 } }`, ['storage.redis.tsl']],
    ['storage: { sqlite: { path: a }, replicas: 3 }', ['storage.replicas']],
    ['storage: { sqlite: { path: a }, redis: { url: "redis://x" } }', ['storage']],
    ['merchant: { name: Shop, publicBaseUrl: "ftp://x" }', ['merchant.publicBaseUrl']],
    ['merchant: { name: Shop, publicBaseUrl: "http://127.0.0.1:3000" }', ['backend.baseUrl']],
    // A token that is no dollar.
    [
      x402(`asset: "0x${'3'.repeat(40)}", assetName: EURC, assetVersion: "1", assetDecimals: 6`),
      ['resources.report.pricing'],
    ],
  ];
  for (const [sections, paths, env] of REFUSED)
    it(`is refused as acg serve refuses it: ${sections}`, () => {
      assert.deepEqual(refused(shop(sections), env), { own: paths, later: [] });
    });

  const ACCEPTED: readonly (readonly [sections: string, env?: Env, pricing?: string])[] = [
    [''],
    ['', {}, '{ type: fixed, amount: "0.01", currency: USDC, settle: after }'],
    ['payments: {}'],
    [x402('payToExclusive: true')],
    [x402('payTo:')],
    [x402(`payTo: "\${PAY_TO}"`)],
    [x402(`payTo: "\${file:/run/secrets/absent}"`)],
    ['payments: { x402: { network: base } }'],
    [facilitator(`url: "https://\${HOST}/x402"`)],
    [facilitator(`url: "https://a.example", auth: { type: bearer, token: "\${TOKEN}" }`)],
    [`merchant: { name: Shop, publicBaseUrl: "\${PUBLIC_URL}" }`],
    [`server: { port: "\${PORT}", adminToken: "\${ADMIN_TOKEN}" }`],
    [`storage: { redis: { url: "\${REDIS_URL}", password: "\${file:/run/secrets/absent}" } }`],
    // What the world replaces.
    [`storage: { redis: { url: "\${REDIS_URL}" } }`, { REDIS_URL: 'http://x' }],
    ['storage: { sqlite: { path: a } }', { REDIS_URL: 'http://x', ADMIN_TOKEN: 'two words' }],
  ];
  for (const [sections, env = {}, pricing] of ACCEPTED)
    it(`is the world's to bring where it is left out or not set: ${[sections, pricing ?? '', ...Object.values(env)].join(' ')}`, () => {
      assert.deepEqual(refused(shop(sections, pricing), env).own, []);
    });

  const files = globSync(['deploy/examples/**/*.yaml', 'deploy/overlays/dev/config/*.yaml']);
  for (const file of files)
    it(`is right in ${file}, without its variables and secrets`, () => {
      const { own, later } = refused(readFileSync(file, 'utf8'), { MERCHANT_BASE_URL: 'http://127.0.0.1:3000' });
      assert.deepEqual(
        own.filter((path) => !later.includes(path)),
        [],
      );
    });
});

describe('a configuration with several ways to be paid, in a local world', () => {
  const LIST = `payments: { x402: [{ network: base-sepolia }, { network: polygon-amoy, currency: AMOY }] }`;
  for (const [pricing, sections, amount] of [
    ['"$0.01"', LIST, '0.01'],
    ['{ type: fixed, amount: "0.02", currency: AMOY }', LIST, '0.02'],
    ['{ type: fixed, amounts: { AMOY: "0.02", USDC: "0.01" } }', LIST, '0.02'],
    ['{ type: fixed, amounts: { USDC: "0.01" } }', 'payments: { x402: { network: base-sepolia } }', '0.01'],
  ] as const)
    it(`has one price: ${pricing}`, () => {
      const text = shop(sections, pricing);
      assert.deepEqual(refused(text).later, []);
      const { x402, alternatives, resources } = parseConfig(
        JSON.stringify(localized(parseConfigText(text), PARTS)),
        {},
      );
      const [{ pricing: price } = assert.fail()] = resources;
      assert.deepEqual([x402?.network, alternatives], [`eip155:${LOCAL_CHAIN_ID}`, []]);
      assert.equal(price.type === 'fixed' && price.amount, amount);
    });
});
