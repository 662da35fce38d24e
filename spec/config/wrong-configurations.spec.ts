import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError, problemLine } from '../../src/problems/problem.ts';
import { file } from './files.ts';

/** A configuration as an operator writes it. Each row below makes one mistake in it. */
const BASE = `version: 1
merchant:
  id: market-shop
  name: Market Shop
  publicBaseUrl: https://api.market-shop.example
server:
  port: 8402
  adminToken: "operator-token-0123456789"
  allowedOrigins: [https://console.market-shop.example]
management:
  port: 8403
backend:
  baseUrl: http://127.0.0.1:3000
  headers:
    x-api-key: merchant-key-0123456789
storage:
  redis:
    url: redis://:store-password@10.0.0.5:6379
  sealing:
    keys:
      - id: k1
        key: "${Buffer.alloc(32, 1).toString('base64')}"
payments:
  x402:
    network: eip155:84532
    asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
    assetName: USDC
    assetVersion: "2"
    assetDecimals: 6
    payTo: "0x1111111111111111111111111111111111111111"
    rpcUrl: https://rpc.example/v1/key-0123456789abcdef
    facilitator:
      mode: remote
      url: https://facilitator.example
      auth:
        type: bearer
        token: facilitator-token-0123456789
protocols:
  mcp:
    enabled: true
resources:
  report:
    name: Market report
    inputSchema:
      type: object
      properties:
        city:
          type: string
          maxLength: 64
      required: [city]
    backend:
      method: GET
      path: /reports/{city}
    pricing:
      type: fixed
      amount: "0.01"
      currency: USDC
    expose: [http, mcp]
    payments: [x402]
  cities:
    name: Cities
    backend:
      method: GET
      path: /cities
    pricing:
      type: free
limits:
  maxInFlight: 512
`;

type Variables = Readonly<Record<string, string>>;

/**
 * What is written in the place of what, and all that is said of it: line, column, path, what is
 * wrong and what would be right.
 */
type Mistake = readonly [title: string, from: string | RegExp, to: string, found: string, env?: Variables];

const MISTAKES: readonly Mistake[] = [
  [
    'a mistyped key',
    'publicBaseUrl:',
    'publicBaseURL:',
    '5:3 merchant.publicBaseURL: is not a known key; did you mean publicBaseUrl?',
  ],
  [
    'a mistyped section',
    'payments:\n  x402',
    'payment:\n  x402',
    '23:1 payment: is not a known key; did you mean payments?',
  ],
  [
    'a mistyped key of a resource',
    '    expose: [http, mcp]',
    '    exposes: [http, mcp]',
    '58:5 resources.report.exposes: is not a known key; did you mean expose?',
  ],
  [
    'a key in the wrong section',
    '  port: 8402',
    '  port: 8402\n  maxInFlight: 64',
    '8:3 server.maxInFlight: is not a known key; known here: host, port, adminToken, adminTokenNext, allowedOrigins, allowedHosts, trustProxy, maxHeadBytes',
  ],
  [
    'a key of another release or product',
    'limits:',
    'logLevel: debug\nlimits:',
    '67:1 logLevel: is not a known key; known here: version, merchant, server, management, backend, storage, protocols, payments, authorization, signing, resources, publish, limits',
  ],
  [
    'a missing key',
    '    payTo: "0x1111111111111111111111111111111111111111"\n',
    '',
    '24:3 payments.x402.payTo: is missing: the address that is paid: 0x and 40 hexadecimal digits',
  ],
  [
    'a missing section',
    /backend:\n {2}baseUrl.*\n {2}headers:\n.*\n/,
    '',
    "1:1 backend: is missing: the merchant's service",
  ],
  [
    'a key without a value',
    'payTo: "0x1111111111111111111111111111111111111111"',
    'payTo:',
    '30:5 payments.x402.payTo: must be the address that is paid: 0x and 40 hexadecimal digits; it has no value',
  ],
  ['another version', 'version: 1', 'version: 2', '1:1 version: must be the number 1'],
  [
    'a text for a number',
    'port: 8402',
    'port: "8402"',
    '7:3 server.port: must be a port from 0 (any free one) to 65535 (0 to 65535), a whole number without quotes',
  ],
  [
    'a word for a number',
    'assetDecimals: 6',
    'assetDecimals: six',
    "29:5 payments.x402.assetDecimals: must be the token's decimals (0 to 36), a whole number without quotes",
  ],
  [
    'yes for true',
    'enabled: true',
    'enabled: yes',
    '40:5 protocols.mcp.enabled: must be true or false, without quotes; YAML reads yes, no, on and off as texts',
  ],
  [
    'a quoted true',
    'enabled: true',
    'enabled: "true"',
    '40:5 protocols.mcp.enabled: must be true or false, without quotes',
  ],
  [
    'true for a mapping',
    '  mcp:\n    enabled: true',
    '  mcp: true',
    '39:3 protocols.mcp: must be a mapping for the Model Context Protocol, such as { enabled: true }',
  ],
  [
    'a text for a list',
    'expose: [http, mcp]',
    'expose: mcp',
    '58:5 resources.report.expose: must be a list of one or more of http, mcp, a2a and origin, each once; [http] when left out',
  ],
  [
    'a number out of its bounds',
    'port: 8402',
    'port: 84020',
    '7:3 server.port: must be a port from 0 (any free one) to 65535 (0 to 65535)',
  ],
  [
    'a limit of zero',
    'maxInFlight: 512',
    'maxInFlight: 0',
    '68:3 limits.maxInFlight: must be the calls served at the same time (1 to 100000)',
  ],
  [
    'an address without quotes',
    '"0x1111111111111111111111111111111111111111"',
    '0x1111111111111111111111111111111111111111',
    '30:5 payments.x402.payTo: must be the address that is paid: 0x and 40 hexadecimal digits; put it in quotes, else YAML reads it as a number',
  ],
  [
    'a price without quotes',
    '"0.01"',
    '0.01',
    '56:7 resources.report.pricing.amount: must be a decimal amount in quotes, such as "0.01"; put it in quotes, else YAML reads it as a number',
  ],
  [
    'a version without quotes',
    'assetVersion: "2"',
    'assetVersion: 2',
    '28:5 payments.x402.assetVersion: must be the token\'s EIP-712 domain version in quotes, such as "2"; put it in quotes, else YAML reads it as a number',
  ],
  [
    'an address that is too short',
    '"0x1111111111111111111111111111111111111111"',
    '"0x11111111111111111111111111111111111111"',
    '30:5 payments.x402.payTo: must be the address that is paid: 0x and 40 hexadecimal digits',
  ],
  [
    'an address with one wrong digit',
    '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    '0x036CbD53842c5426634e7929541eC2318f3dCF7f',
    '26:5 payments.x402.asset: must have a valid checksum (EIP-55), or be all lower case; a digit or a letter case is wrong',
  ],
  [
    'the zero address',
    '0x1111111111111111111111111111111111111111',
    '0x0000000000000000000000000000000000000000',
    '30:5 payments.x402.payTo: must not be the zero address: the money would be lost',
  ],
  [
    'the address of the token as payee',
    '0x1111111111111111111111111111111111111111',
    '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
    "30:5 payments.x402.payTo: must not be the token's own address: the money would be lost",
  ],
  [
    'a network by a mistyped name',
    'eip155:84532',
    'base-sepolla',
    '25:5 payments.x402.network: must be a network such as base-sepolia, base or local, or a CAIP-2 id such as eip155:84532; did you mean base-sepolia?',
  ],
  [
    'a network that is not known',
    'eip155:84532',
    'eip155:84533',
    '25:5 payments.x402.network: is unknown; known: eip155:31337 (development chain), eip155:1337 (development chain), eip155:1 (Ethereum), eip155:137 (Polygon), eip155:143 (Monad), eip155:1329 (Sei), eip155:8453 (Base), eip155:42161 (Arbitrum One), eip155:42220 (Celo), eip155:43114 (Avalanche), eip155:1328 (Sei testnet), eip155:43113 (Avalanche Fuji), eip155:80002 (Polygon Amoy), eip155:84532 (Base Sepolia), eip155:421614 (Arbitrum Sepolia), eip155:11155111 (Ethereum Sepolia); any chain when facilitator and rpcUrl are on loopback',
  ],
  [
    'the wrong decimals of USDC',
    'assetDecimals: 6',
    'assetDecimals: 18',
    '29:5 payments.x402.assetDecimals: must be 6 for USDC on this network',
  ],
  [
    'the wrong name of USDC',
    'assetName: USDC',
    'assetName: USD Coin\n    currency: USDC',
    '27:5 payments.x402.assetName: must be "USDC" for USDC on this network',
  ],
  [
    'a price in another currency',
    'currency: USDC',
    'currency: USD',
    '57:7 resources.report.pricing.currency: must be "USDC", or set payments.x402.currency to what prices call this token',
  ],
  [
    'a price with a currency sign',
    '"0.01"',
    '"$0.01"',
    '56:7 resources.report.pricing.amount: must be a price that can be charged exactly: the amount is not a decimal number such as "0.01" (digits and at most one point, no sign, no exponent)',
  ],
  [
    'a price of zero',
    '"0.01"',
    '"0"',
    '56:7 resources.report.pricing.amount: must be more than zero; use type: free to give it away',
  ],
  [
    'a price the token cannot hold',
    '"0.01"',
    '"0.0000001"',
    '56:7 resources.report.pricing.amount: must be a price that can be charged exactly: the amount has more decimals than the asset (6)',
  ],
  [
    'mainnet without consent',
    /network: eip155:84532\n {4}asset: .*\n {4}assetName: USDC/,
    'network: eip155:8453\n    asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"\n    assetName: USD Coin\n    currency: USDC',
    '24:3 payments.x402.allowMainnet: must be true to take real money on this network',
  ],
  [
    'a secret that is not set',
    '"operator-token-0123456789"',
    `"\${ADMIN_SECRET}"`,
    '8:3 server.adminToken: needs the environment variable ADMIN_SECRET (or ADMIN_SECRET_FILE), which is not set',
  ],
  [
    'a mounted secret that is not there',
    '"operator-token-0123456789"',
    `"\${file:/run/secrets/absent}"`,
    '8:3 server.adminToken: needs a mounted file: /run/secrets/absent cannot be read (ENOENT): there is no such file',
  ],
  [
    'a relative path of a mounted secret',
    '"operator-token-0123456789"',
    `"\${file:secrets/token}"`,
    `8:3 server.adminToken: has a file: placeholder whose path is not absolute; write \${file:/path/of/the/file}`,
  ],
  [
    'a token of two words',
    '"operator-token-0123456789"',
    '"operator token"',
    '8:3 server.adminToken: must be a token of at most 512 visible ASCII characters; empty means that operator routes do not exist',
  ],
  [
    'a variable with a wrong value',
    '"0x1111111111111111111111111111111111111111"',
    `"\${PAY_TO}"`,
    '30:5 payments.x402.payTo: must be the address that is paid: 0x and 40 hexadecimal digits; the value comes from the environment variable PAY_TO',
    { PAY_TO: '0x12' },
  ],
  [
    'a variable that is no number',
    'port: 8402',
    `port: "\${PORT}"`,
    '7:3 server.port: must be a port from 0 (any free one) to 65535: a whole number such as 8402 and nothing else, which the environment variable PORT is not',
    { PORT: 'http' },
  ],
  [
    'a variable and its file',
    '"operator-token-0123456789"',
    `"\${ADMIN_SECRET}"`,
    '8:3 server.adminToken: ADMIN_SECRET and ADMIN_SECRET_FILE are both set; keep one',
    { ADMIN_SECRET: 'a', ADMIN_SECRET_FILE: '/b' },
  ],
  [
    'a facilitator token that is missing',
    '        token: facilitator-token-0123456789\n',
    '',
    '35:7 payments.x402.facilitator.auth.token: is missing: a token of 1 to 4096 visible ASCII characters',
  ],
  [
    'a token without its type',
    'type: bearer',
    'type: none',
    '37:9 payments.x402.facilitator.auth.token: is not used with type: none; remove it',
  ],
  [
    'an unknown way to log in',
    'type: bearer',
    'type: basic',
    '36:9 payments.x402.facilitator.auth.type: must be none, bearer or cdp',
  ],
  [
    'a sealing key that is too short',
    /key: ".*"/,
    'key: "c2hvcnQ="',
    '22:9 storage.sealing.keys[0].key: must be 32 random bytes as base64; make them with: openssl rand -base64 32',
  ],
  [
    'an order of money and work that is none',
    '      currency: USDC\n',
    '      currency: USDC\n      settle: during\n',
    '58:7 resources.report.pricing.settle: must be before or after: whether the payment is settled before the backend is called, or after it answered',
  ],
  [
    'a window too short to settle after the call',
    '/reports/{city}\n    pricing:\n',
    '/reports/{city}\n      timeoutMs: 60000\n    pricing:\n      settle: after\n',
    '56:7 resources.report.pricing.settle: needs payments.x402.maxTimeoutSeconds of at least 140: the call may take 60000 ms, and then its payment is settled',
  ],
  [
    'a public URL without its scheme',
    'https://api.market-shop.example',
    'api.market-shop.example',
    '5:3 merchant.publicBaseUrl: must be an absolute http:// or https:// URL',
  ],
  [
    'a backend elsewhere',
    'http://127.0.0.1:3000',
    'http://shop-api:3000',
    '13:3 backend.baseUrl: must be on loopback (127.0.0.1, [::1], localhost), or set backend.allowNonLoopback: true',
  ],
  [
    'a header of the connection',
    'x-api-key:',
    'Host:',
    '15:5 backend.headers.Host: is a header that the gateway sets itself; remove it',
  ],
  [
    'an origin with a path',
    'https://console.market-shop.example',
    'https://console.market-shop.example/',
    "9:20 server.allowedOrigins[0]: must be an exact origin such as https://console.example: no path, no trailing slash, no default port, no '*'",
  ],
  ['one port for both listeners', 'port: 8403', 'port: 8402', '11:3 management.port: must differ from server.port'],
  [
    'a wrong URL of Redis',
    'redis://:store-password@10.0.0.5:6379',
    'http://:store-password@10.0.0.5:6379',
    '18:5 storage.redis.url: must be a redis://, rediss:// or unix:// URL',
  ],
  [
    'a database of Redis that is no number',
    '10.0.0.5:6379',
    '10.0.0.5:6379/shop',
    '18:5 storage.redis.url: must end with the number of the database or with nothing',
  ],
  [
    'two stores',
    '  sealing:',
    '  sqlite: { path: gateway.db }\n  sealing:',
    '16:1 storage: must be where payments are remembered: exactly one of redis or sqlite; more than one of them is here',
  ],
  [
    'no store',
    / {2}redis:\n.*\n/,
    '',
    '16:1 storage: must be where payments are remembered: exactly one of redis or sqlite; none of them is here',
  ],
  [
    'several replicas of SQLite',
    /redis:\n.*\n/,
    'sqlite: { path: /tmp/x.db }\n  replicas: 3\n',
    '18:3 storage.replicas: must be 1 with sqlite; several replicas need storage.redis',
  ],
  [
    'a setting of another kind of facilitator',
    'mode: remote',
    `mode: remote\n      privateKey: 0x${'1'.repeat(64)}`,
    '34:7 payments.x402.facilitator.privateKey: is not used with mode: remote; remove it',
  ],
  [
    'a facilitator kind that there is not',
    'mode: remote',
    'mode: remot',
    '33:7 payments.x402.facilitator.mode: must be remote or local; did you mean remote?',
  ],
  [
    'a mount on a path of the gateway',
    '    enabled: true',
    '    enabled: true\n    mountPath: /api',
    "41:5 protocols.mcp.mountPath: must not be one of the gateway's own paths: /api, /console, /health, /ready, /metrics, /drain, /release, /app-probe",
  ],
  [
    'a resource id with a space',
    '  report:',
    '  market report:',
    "42:3 resources[\"market…\"]: must be named by an id of 1 to 128 letters, digits, '.', '_' or '-'",
  ],
  [
    'a method in lower case',
    'method: GET\n      path: /cities',
    'method: get\n      path: /cities',
    '63:7 resources.cities.backend.method: must be one of GET, DELETE, POST, PUT, PATCH; did you mean GET?',
  ],
  [
    'a kind of price that there is not',
    'type: fixed',
    'type: dynamic',
    '55:7 resources.report.pricing.type: must be free or fixed',
  ],
  [
    'an amount on a free resource',
    'type: free',
    'type: free\n      amount: "1"',
    '67:7 resources.cities.pricing.amount: is not used with type: free; remove it',
  ],
  [
    'an adapter that is switched off',
    'expose: [http, mcp]',
    'expose: [a2a]',
    '58:5 resources.report.expose: must name at least one adapter that is enabled; set protocols.a2a.enabled: true, or name another one',
  ],
  [
    'a path without its slash',
    'path: /cities',
    'path: cities',
    '64:7 resources.cities.backend.path: must be a path that begins with one /: no host, no parameter before it',
  ],
  [
    'a parameter that is not declared',
    '/reports/{city}',
    '/reports/{town}',
    '53:7 resources.report.backend.path: has {town}, which inputSchema.properties does not declare',
  ],
  [
    'a parameter that is not required',
    '      required: [city]\n',
    '',
    '52:7 resources.report.backend.path: has {city}, which inputSchema.required does not list',
  ],
  [
    'a whole URL as path',
    'path: /cities',
    'path: http://127.0.0.1:3000/cities',
    '64:7 resources.cities.backend.path: must be a path that begins with one /: no host, no parameter before it',
  ],
  [
    'a mistyped keyword of a schema',
    'maxLength: 64',
    'maxLenght: 64',
    '49:11 resources.report.inputSchema.properties.city.maxLenght: is not a keyword that is enforced here; did you mean maxLength?',
  ],
  [
    'a type that JSON Schema has not',
    'type: string',
    'type: text',
    '48:11 resources.report.inputSchema.properties.city.type: must be one of object, array, string, number, integer, boolean, null',
  ],
  [
    'a pattern that does not compile',
    'maxLength: 64',
    'pattern: "["',
    '49:11 resources.report.inputSchema.properties.city.pattern: must be a regular expression (ECMAScript)',
  ],
  [
    'a format that is not known',
    'maxLength: 64',
    'format: postcode',
    '49:11 resources.report.inputSchema.properties.city.format: is not a format that is enforced here; enforced are date, time, date-time, iso-time, iso-date-time, duration, uri, uri-reference, uri-template, url, email, hostname, ipv4, ipv6, regex, uuid, json-pointer, json-pointer-uri-fragment, relative-json-pointer, byte, password, binary',
  ],
  [
    'a required property that is not declared',
    'required: [city]',
    'required: [city, day]',
    '50:7 resources.report.inputSchema.required: lists day, which properties does not declare',
  ],
  [
    'overlapping paths in place',
    '    name: Cities\n    backend:\n      method: GET\n      path: /cities',
    '    name: Cities\n    expose: [origin]\n    backend:\n      method: GET\n      path: /reports/berlin',
    '65:7 resources.cities.backend.path: must not be an address of resources.report too while one of them is sold at its own address',
  ],
  [
    'a mandate that is not configured',
    '    payments: [x402]',
    '    payments: [x402]\n    authorization: { required: [ap2] }',
    '60:22 resources.report.authorization.required: needs authorization.ap2.enabled: true, and its checkout and issuers, on the top level of this document',
  ],
];

/** Mistakes of one file, each in its line. */
const TOGETHER: readonly string[] = [
  'a public URL without its scheme',
  'a text for a number',
  'a secret that is not set',
  'an origin with a path',
  'a backend elsewhere',
  'a header of the connection',
  'a database of Redis that is no number',
  'a sealing key that is too short',
  'an address with one wrong digit',
  'a version without quotes',
  'a variable with a wrong value',
  'an unknown way to log in',
  'yes for true',
  'a mistyped keyword of a schema',
  'a parameter that is not declared',
  'a price with a currency sign',
  'a price in another currency',
  'a method in lower case',
  'a path without its slash',
  'a limit of zero',
];

/** What is said of a file, without the folder that it is in. */
function said(text: string, env: Variables): readonly string[] {
  const path = file('config.yaml', text);
  try {
    loadConfig({ path, env });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((problem) => problemLine(problem).replace(path, 'config.yaml'));
  }
  return [];
}

function inFile([, , , found]: Mistake): string {
  return `config.yaml:${found}`;
}

function made(text: string, [title, from, to]: Mistake): string {
  const changed = text.replace(from, () => to);
  assert.notEqual(changed, text, title);
  return changed;
}

describe('a wrong configuration', () => {
  it('is right before the mistake is made', () => assert.deepEqual(said(BASE, {}), []));

  for (const mistake of MISTAKES) {
    const [title, , , , env = {}] = mistake;
    it(`is told its file, line, path and remedy: ${title}`, () =>
      assert.deepEqual(said(made(BASE, mistake), env), [inFile(mistake)]));
  }

  it('is one of at least sixty', () => assert.ok(MISTAKES.length >= 60));

  it('with twenty mistakes is told all twenty in one pass', () => {
    const mistakes = MISTAKES.filter(([title]) => TOGETHER.includes(title));
    assert.equal(mistakes.length, 20);
    const env: Variables = Object.assign({}, ...mistakes.map(([, , , , one]) => one));
    const expected = mistakes.map(inFile).toSorted((one, other) => lineOf(one) - lineOf(other));
    assert.deepEqual(said(mistakes.reduce(made, BASE), env), expected);
  });
});

function lineOf(said: string): number {
  return Number(said.split(':')[1]);
}
