import { describe } from 'node:test';
import { type Row, refuses } from './refusals.ts';

const X = 'payments.x402';
const R = 'resources.report';

const SHAPE: readonly Row[] = [
  ['a public URL with a query', 'merchant.publicBaseUrl', 'https://a.example/?x=1', /query/],
  ['a name that hides text', 'merchant.name', 'Shop\u202eevil', /bidirectional/],
  ['a probe without a path', { 'backend.probe': {} }, 'backend.probe.path', /is missing: a path below the base URL/],
  ['any browser origin', { 'server.allowedOrigins': ['*'] }, 'server.allowedOrigins[0]', /exact origin/],
  ['an opaque origin', { 'server.allowedOrigins': ['null'] }, 'server.allowedOrigins[0]', /exact origin/],
  ['the port of agents as the backend', 'backend.baseUrl', 'http://localhost:8402', /the gateway's own/],
  ['the port of probes as the backend', 'backend.baseUrl', 'http://127.0.0.1:8403/api', /the gateway's own/],
  [
    'the public address as the backend',
    { 'backend.baseUrl': 'https://api.shop.example', 'backend.allowNonLoopback': true },
    'backend.baseUrl',
    /the gateway's own/,
  ],
  ['no resource', 'resources', {}, /resources by id/],
  ['a key that reaches a prototype', 'resources.constructor', {}, /no key may have/],
];

const OUTSIDE: readonly string[] = [
  ...['http://10.0.0.1', 'http://shop.example:3000', 'http://[fd00::1]', 'http://128.0.0.1', 'http://168430090'],
  ...['http://localhost.example', 'http://127.0.0.1.nip.example', 'http://[2001:db8::1]'],
];

/** Metadata of clouds and any address, in every spelling of a URL. */
const FORBIDDEN: readonly string[] = [
  ...['http://169.254.169.254', 'http://169.254.169.254.', 'http://2852039166', 'http://0xA9FEA9FE'],
  ...['http://0xa9.0xfe.0xa9.0xfe', 'http://0251.0376.0251.0376', 'http://169.254.43518', 'http://169.16689662'],
  ...['http://[::ffff:169.254.169.254]', 'http://[::ffff:a9fe:a9fe]', 'http://[::ffff:127.0.0.1]:3000'],
  ...['http://[64:ff9b::a9fe:a9fe]', 'http://[fe80::1]', 'http://[fd00:ec2::254]', 'http://[::]', 'http://[ff02::1]'],
  ...['http://0.0.0.0:3000', 'http://0:3000', 'http://0x0:3000', 'http://100.100.100.200', 'http://192.0.0.192'],
  ...['http://168.63.129.16', 'http://224.0.0.1', 'http://255.255.255.255', 'http://metadata'],
  ...['http://metadata.google.internal', 'http://METADATA.google.internal.', 'http://instance-data'],
];

const HOSTS: readonly Row[] = [
  ...OUTSIDE.map(
    (url): Row => [
      `the backend at ${url} where it is not allowed`,
      'backend.baseUrl',
      url,
      /on loopback.*allowNonLoopback/,
    ],
  ),
  ...FORBIDDEN.map(
    (url): Row => [
      `the backend at ${url} even where others are allowed`,
      { 'backend.baseUrl': url, 'backend.allowNonLoopback': true },
      'backend.baseUrl',
      /must not name a link-local/,
    ],
  ),
  ['backend credentials', 'backend.baseUrl', 'http://u:p@127.0.0.1', /credentials/],
  ['an empty userinfo', 'backend.baseUrl', 'http://@127.0.0.1', /credentials/],
  ['a backend query', 'backend.baseUrl', 'http://127.0.0.1/?', /query/],
  ['a backend fragment', 'backend.baseUrl', 'http://127.0.0.1/#a', /fragment/],
  ['a host behind a userinfo', 'backend.baseUrl', 'http://127.0.0.1@169.254.169.254', /credentials/],
  ['a host before a fragment', 'backend.baseUrl', 'http://169.254.169.254#@127.0.0.1', /credentials/],
  ['a path of a backslash', 'backend.baseUrl', 'http://127.0.0.1\\@169.254.169.254', /backslashes/],
  ['digits of another script', 'backend.baseUrl', 'http://\uff11\uff16\uff19.254.169.254', /non-ASCII/],
  ['dots of another script', 'backend.baseUrl', 'http://169\u3002254\u3002169\u3002254', /non-ASCII/],
  ['an escaped slash', 'backend.baseUrl', 'http://169.254.169.254%2f', /./],
  ...['ftp://127.0.0.1', 'file:///etc/passwd', 'gopher://127.0.0.1', 'unix:/run/merchant.sock'].map(
    (url): Row => [`a backend over another scheme, ${url}`, 'backend.baseUrl', url, /absolute http/],
  ),
  ['a host from input', 'backend.baseUrl', 'http://{host}:80', /braces/],
  [
    'a payment header',
    { [`${R}.backend.headers`]: { 'payment-signature': 'x' } },
    `${R}.backend.headers.payment-signature`,
    /sets itself/,
  ],
  ['a facilitator on metadata', `${X}.facilitator.url`, 'http://169.254.169.254', /link-local/],
];

for (const [title, rows] of Object.entries({ SHAPE, HOSTS }))
  describe(`start-up refuses (${title.toLowerCase()})`, () => refuses(rows));
