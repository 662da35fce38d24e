/**
 * Requests for what is not sold: each reaches the merchant as it was sent, unless it is spelled so
 * that the rule must refuse it while something is sold.
 */

import type { RequestLine, Route } from '../../src/passthrough/route.ts';
import { type Chance, chanceOf } from '../chaos/sim/chance.ts';
import { type RouteOf, routesOf, SOLD } from './gateway.ts';
import type { Merchant } from './merchant.ts';
import { type Case, sendAll } from './send.ts';

/** Whether a request has to pass; else what must keep it: a step, or the sale in place. */
type Expected = 'pass' | 'in_place' | Step;

export interface HarmlessCase extends Case {
  readonly expected: Expected;
}

/** `count` requests, the same for the same seed; those that must be refused are among them once. */
export function harmlessCases(count: number, seed: number): readonly HarmlessCase[] {
  const chance = chanceOf(seed);
  const made: HarmlessCase[] = REFUSED.map(([expected, method, target], id) => ({ id, method, target, expected }));
  for (const target of FIXED) made.push({ ...request(chance, target), id: made.length });
  while (made.length < count) made.push({ ...request(chance, randomTarget(chance)), id: made.length });
  return made;
}

/** What became of the requests at one merchant. */
export interface HarmlessOutcome {
  readonly requests: number;
  /** Came to the merchant with method, target and body as they were sent. */
  readonly unchanged: number;
  /** Came to it otherwise. */
  readonly changed: readonly HarmlessCase[];
  /** Had to pass, and did not. */
  readonly refused: readonly HarmlessCase[];
  /** Had to be refused, and were, by the step that they name. */
  readonly refusedByRule: readonly HarmlessCase[];
  /** Had to be refused by a step, and were not, or by another one. */
  readonly passedInVain: readonly HarmlessCase[];
}

/** Sends the requests to a port in front of the merchant. */
export async function measureHarmless(
  merchant: Merchant,
  port: number,
  cases: readonly HarmlessCase[],
): Promise<HarmlessOutcome> {
  const routeOf = routesOf(merchant.port);
  merchant.reset();
  await sendAll(port, cases);
  const arrived = (one: HarmlessCase): boolean => merchant.arrivals.has(one.id);
  const due = cases.filter(({ expected }) => expected === 'pass');
  const refusable = cases.filter(({ expected }) => expected !== 'pass');
  const byRule = (one: HarmlessCase): boolean => !arrived(one) && keptBy(one, routeOf) === one.expected;
  const same = (one: HarmlessCase): boolean => arrivedUnchanged(merchant, one);
  return {
    requests: cases.length,
    unchanged: due.filter((one) => arrived(one) && same(one)).length,
    changed: due.filter((one) => arrived(one) && !same(one)),
    refused: due.filter((one) => !arrived(one)),
    refusedByRule: refusable.filter(byRule),
    passedInVain: refusable.filter((one) => !byRule(one)),
  };
}

function keptBy({ method, target }: HarmlessCase, routeOf: RouteOf): Expected | undefined {
  const req = { method, url: target };
  const route = routeOf(req);
  return route.kind === 'in_place' ? 'in_place' : stepOf(route, req);
}

function arrivedUnchanged({ arrivals }: Merchant, { id, method, target, body }: HarmlessCase): boolean {
  const arrival = arrivals.get(id);
  const bytes = body?.bytes ?? Buffer.alloc(0);
  return arrival?.method === method && arrival.target === target && arrival.body().equals(bytes);
}

/** One of each kind that has to be refused while the operations of this table are sold. */
const REFUSED: readonly (readonly [Expected, string, string])[] = [
  ['target', 'GET', '/guide#chapter'],
  ['target', 'GET', 'http://shop.test/guide'],
  ['target', 'GET', '/windows\\path'],
  ['target', 'GET', `/${'long/'.repeat(1_700)}`],
  ['in_place', 'GET', '/reports/'],
  ['tolerant', 'GET', '/Reports/Berlin'],
  ['tolerant', 'GET', '/reports/berlin/'],
  ['tolerant', 'GET', '/PRICES.CSV'],
  ['methods', 'DELETE', '/reports/berlin'],
  ['methods', 'PUT', '/orders/42/confirm'],
  ['ambiguous', 'GET', '/blog//reports/yearly'],
  ['ambiguous', 'GET', '/archive/reports/a%2Fb'],
  ['ambiguous', 'GET', '/reports/2024/q1;v=1'],
  ['ambiguous', 'GET', '/files/prices.csv;jsessionid=0A1B'],
  ['ambiguous', 'GET', '/docs/../reports'],
  ['ambiguous', 'GET', '/orders//42/items/confirm'],
  ['ambiguous', 'GET', '/caf%E9/reports/50%'],
  ['second', 'GET', '/reports/berlin/today'],
  ['second', 'GET', '/v1/reports/berlin'],
  ['second', 'GET', '/archive/reports/2023/'],
  ['second', 'GET', '/_next/static/chunks/app/reports/page-1f2e.js'],
  ['second', 'GET', '/prices.csv.gz'],
  ['second', 'GET', '/prices.csv/history'],
  ['second', 'GET', '/prices.csvs'],
  ['second', 'GET', '/orders/42/confirmed'],
  ['second', 'GET', '/orders/42/items/confirm'],
  ['second', 'GET', '/login?next=%2Freports%2Fberlin'],
  ['second', 'GET', '/search?q=/reports/berlin'],
  ['second', 'GET', '/go?to=http://x/prices.csv'],
  ['second', 'POST', '/collect?page=https%3A%2F%2Fshop.test%2Freports%2Fberlin'],
  ['second', 'GET', '/q?x=%2Freports%2Fx'],
];

/** What resembles something sold, and what proxies often change. */
const FIXED: readonly string[] = [
  ...['/', '/?', '/index.html', '/favicon.ico', '/robots.txt', '/.well-known/security.txt', '/report', '/reports'],
  ...['/Reports', '/reports?city=berlin', '/en/reports', '/reports.json', '/reports-2024/berlin'],
  ...['/orders/42/history/7', '/search?q=prices.csv', '/login?next=%2Freports', '/search?q=reports+24/7'],
  ...['/my-reports/berlin', '/reportsx/;v', '/prices', '/price%2Fs.csv', '/orders', '/orders/42'],
  ...['/orders/42/items/7', '/orders/;a/42', '/confirm/orders', '/a//b', '//a/b', '//a%20b', '//a:b/c', '/a/'],
  ...['/a//', '/a/./b', '/a/../b', '/..', '/.', '/a/..', '/a/%2e%2e/b', '/a;b/c', '/;/', '/x;jsessionid=1'],
  ...['/@scope%2fname', '/@scope%2Fname/-/name-1.0.0.tgz', '/files/a%2Fb', '/files/a%5Cb', '/caf%E9', '/caf%C3%A9'],
  ...['/%e2%82%ac', '/100%', '/100%25', '/%zz', '/%', '/a%00b', '/a%0ab', '/%FF%FE', '/%c0%af', '/%u20ac', '/a+b'],
  ...['/a%20b', '/a%2Bb', '/%252e%252e', "/a'b", '/a"b', '/a|b', '/a^b', '/a`b', '/{a}', '/[a]', '/a<b>', '/a,b'],
  ...['/a:b', '/a@b', '/a=b&c', '/a!b', '/a*b', '/a$b', '/(a)', '/q?a=1&a=2', '/q?a[]=1&a[b]=2', '/q?a=%zz'],
  ...['/q?a=\\', '/q??', '/q?a=b?c', '/q?;', '/q?%00', '/q?a=/../b', '/q?_method=GET', '/index.php/page'],
  ...['/wp-login.php?x=1', '/graphql?query=%7Ba%7D', '/api/v2/Users(1)/$value', '/...', '/a/.../b', '/~user/', '/*'],
  ...['/-/', '/__proto__', '/constructor', '/a.b.c', '/A/b/C', '/a%2e', '/.htaccess', '/a.', '/a%20/', '/\u007e'],
];

function request(chance: Chance, target: string): Omit<HarmlessCase, 'id'> {
  const method = chance.pick(['GET', 'GET', 'HEAD', 'POST', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']);
  const body = /^(?:POST|PUT|PATCH|DELETE|PROPFIND)$/.test(method) ? randomBody(chance) : undefined;
  return { method, target, expected: 'pass', ...(body === undefined ? {} : { body }) };
}

function randomBody(chance: Chance): Case['body'] {
  if (chance.happens(0.2)) return undefined;
  const bytes = Buffer.from(Array.from({ length: 1 + chance.below(2_000) }, () => chance.below(256)));
  return chance.pick([
    {
      type: 'application/json',
      bytes: Buffer.from(JSON.stringify({ text: 'Zürich', list: [1, 2, chance.below(99)] })),
    },
    { type: 'application/json', bytes: Buffer.from('{ "not": json') },
    { type: 'application/x-www-form-urlencoded', bytes: Buffer.from(`a=1&_method=GET&b=%C3%BC&c=${chance.below(99)}`) },
    { type: 'application/octet-stream', bytes },
    { type: 'multipart/form-data; boundary=x', bytes: Buffer.concat([Buffer.from('--x\r\n\r\n'), bytes]) },
    { type: 'text/plain; charset=utf-8', bytes: Buffer.from('GET /reports/berlin HTTP/1.1\r\nHost: x\r\n\r\n') },
  ]);
}

/** Segments that a path is made from; none is a segment of something sold. */
const SEGMENTS: readonly string[] = [
  ...['shop', 'Shop', 'ITEMS', 'blog', 'a', '42', 'v1', 'report', 'price.csv', 'order', 'confirmation', 'x.y.z'],
  ...['~me', '-', '_', 'caf%C3%A9', 'caf%E9', '%E6%97%A5%E6%9C%AC', '%F0%9F%9B%92', 'a%2Fb', 'a%2fb'],
  ...['@scope%2fname', 'a%20b', 'a+b', '100%25', '50%', 'x;jsessionid=0A1B2C', 'y;v=1;w=2', ';', 'a,b', 'a:b', 'k=v'],
  ...['%41bc', '%61', 'a%5Cb', 'a%00', '..', '.', '', '%2e%2e', '...', "it's", '(1)', '[0]', '{id}', '$value', '!'],
  ...['*', 'a|b', 'a%7Cb', '%EF%BC%A1', '%C5%BF', '%c0%af', '%u0041', 'reports-2024', 'xprices.csv'],
];

function randomTarget(chance: Chance): string {
  const segments = Array.from({ length: 1 + chance.below(5) }, () => chance.pick(SEGMENTS));
  const path = `/${segments.join('/')}${chance.happens(0.2) ? '/' : ''}`;
  if (chance.happens(0.5)) return path;
  const pairs = Array.from({ length: 1 + chance.below(4) }, () => `${chance.pick(SEGMENTS)}=${chance.pick(SEGMENTS)}`);
  if (chance.happens(0.1)) pairs.push(`long=${'abc%20'.repeat(100 + chance.below(1_000))}`);
  if (chance.happens(0.1)) pairs.push('back=/reports');
  return `${path}?${pairs.join('&')}`;
}

/**
 * One part of the rule: `target` refuses targets that no server should be sent, `tolerant` compares
 * plain paths without case, escapes and slash, `ambiguous` refuses paths that servers read
 * differently, `second` other names of what is sold, `methods` every method of a sold path.
 */
type Step = 'target' | 'tolerant' | 'ambiguous' | 'second' | 'methods';

/** The step that refused; undefined when none did. */
function stepOf(route: Route, { url = '' }: RequestLine): Step | undefined {
  if (route.kind !== 'refused') return undefined;
  switch (route.error.details?.reason) {
    case 'request_target':
      return 'target';
    case 'ambiguous_path':
      return /backend\.passthrough\.allow/.test(route.error.message) ? 'second' : 'ambiguous';
    case 'path_spelling':
      return 'tolerant';
    default:
      if (route.error.code === 'METHOD_NOT_ALLOWED') return 'methods';
      // The path of something that is sold through other channels only.
      return isPlain(url) ? undefined : 'tolerant';
  }
}

function isPlain(url: string): boolean {
  return SOLD.some(({ target }) => url.split('?')[0] === target);
}
