/**
 * The table of routes: one row for each thing that a path of an app answers. A new route needs a
 * row here, and `table.spec.ts` then asks it with every method.
 */

import type { Express } from 'express';
import { OPERATION_RULES, type Operation, SESSION_PLACE } from '../../src/checkouts/operations.ts';
import { CONSOLE_FILES } from '../../src/operator/console/routes.ts';
import { receiptId } from '../../src/receipts/receipt.ts';
import { APP_PROBES } from '../../src/sidecar/app-probe-settings.ts';
import { message, sendMessage, VERSION } from '../adapters/a2a/post.ts';
import { CART, rightHeaders } from '../adapters/acp/testbed.ts';
import type { ConfigObject } from '../support/config.ts';
import { OPERATOR_TOKEN } from '../support/gateway.ts';
import { exposedOn, type Sent, send } from './world.ts';

/** Methods that every path is asked with. */
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'];

/** A setting that some routes need, and the changes that take it away. */
export const WITHOUT = {
  http: { protocols: { http: { enabled: false } } },
  mcp: { protocols: { mcp: { enabled: false } } },
  a2a: { protocols: { a2a: { enabled: false } } },
  acp: { protocols: { acp: { enabled: false } } },
  'an operator token': { server: { adminToken: undefined } },
  'any key': { protocols: { a2a: { signingKey: undefined } }, signing: undefined },
  'a key of receipts': { signing: undefined },
  'what is published': { publish: [] },
  'sale in place': { resources: exposedOn('http', 'mcp', 'a2a') },
} as const satisfies Readonly<Record<string, ConfigObject>>;
export type Setting = keyof typeof WITHOUT;

/** What a path answers to a right request. */
export interface Route {
  readonly app: 'agents' | 'management';
  /** As specification 1 names it; `pod` and `hooks` are for the listener that no Service shows. */
  readonly audience: 'probes' | 'anyone' | 'agents' | 'operators' | 'pod' | 'hooks';
  /** What a request is refused without: 401. */
  readonly auth: 'none' | 'operator token' | 'checkout token';
  readonly method: 'GET' | 'POST';
  /** What finds the handler of a path: `complete.spec.ts` has a check for each. */
  readonly matchedBy: 'express' | 'checkout adapter' | 'address';
  /** As it is mounted, as its adapter has it below the mount, or as the backend has it. */
  readonly pattern: string;
  /** One spelling of the pattern; default: the pattern itself. */
  readonly path: string;
  /**
   * `Allow` of a refused method. HEAD and OPTIONS are answered where they stand there; GET and HEAD
   * of what is sold by POST get its price.
   */
  readonly allow: 'GET, HEAD' | 'GET' | 'POST' | 'POST, GET' | `${'' | 'GET, HEAD, '}${'' | 'POST, '}OPTIONS`;
  /** A right request, each time a new one. */
  readonly sent: () => Sent;
  readonly status: number;
  readonly mediaType: string | RegExp;
  /** Undefined: the header is absent. */
  readonly cacheControl: string | undefined;
  /** What readers revalidate with: If-None-Match, or If-Modified-Since as well. */
  readonly validators: 'none' | 'etag' | 'etag and date';
  /** Headers beyond those above. Without a `vary` here there is none. */
  readonly headers: Readonly<Record<string, string | RegExp>>;
  /** Without one of them the path is no route. */
  readonly needs: readonly Setting[];
}

const JSON_TYPE = 'application/json; charset=utf-8';

type Changes = Partial<Route> & Pick<Route, 'audience' | 'pattern'>;

/** A document that GET and HEAD read. */
const readable = (changes: Changes): Route => ({
  app: 'agents',
  auth: 'none',
  method: 'GET',
  matchedBy: 'express',
  path: changes.pattern,
  allow: 'GET, HEAD',
  sent: () => ({}),
  status: 200,
  mediaType: JSON_TYPE,
  cacheControl: 'no-store',
  validators: 'none',
  headers: {},
  needs: [],
  ...changes,
});

/** What takes a JSON body and nothing else. */
const callable = (changes: Changes & { readonly body: unknown; readonly more?: Sent['headers'] }): Route => {
  const { body, more = {}, ...rest } = changes;
  const sent = { headers: { 'content-type': 'application/json', ...more }, body: JSON.stringify(body) };
  return readable({ method: 'POST', allow: 'POST', sent: () => sent, ...rest });
};

const probe = (app: Route['app'], pattern: string): Route => readable({ app, audience: 'probes', pattern });

/** What the kubelet asks before it stops a container. */
const hook = (pattern: string): Route =>
  readable({
    ...{ app: 'management', audience: 'hooks', pattern, allow: 'GET' },
    sent: () => ({ headers: { 'agent-commerce-hook': '1' } }),
  });

const published = (pattern: string, changes: Partial<Route> = {}): Route =>
  readable({
    ...{ audience: 'anyone', pattern, validators: 'etag and date', cacheControl: 'public, max-age=300' },
    ...changes,
  });

/** A document about what is sold. */
const document = (pattern: string, changes: Partial<Route> = {}): Route =>
  published(pattern, { cacheControl: 'no-cache', validators: 'etag', needs: ['what is published'], ...changes });

const invoke = (resource: string, body: unknown, changes: Partial<Route>): Route =>
  callable({
    audience: 'agents',
    ...{ pattern: '/api/resources/:id/invoke', path: `/api/resources/${resource}/invoke` },
    body,
    needs: ['http'],
    ...changes,
  });

const a2a = (pattern: string): Route =>
  callable({
    ...{ audience: 'agents', pattern, needs: ['a2a'] },
    ...{ body: sendMessage(message('cities')), more: VERSION, mediaType: 'application/json' },
  });

const AUTHORIZED = { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } };

const operators = (pattern: string, changes: Partial<Route> = {}): Route =>
  readable({
    ...{ audience: 'operators', auth: 'operator token', needs: ['an operator token'] },
    ...{ pattern, sent: () => AUTHORIZED },
    ...changes,
  });

const page = (pattern: string, mediaType: string): Route =>
  readable({
    ...{ audience: 'operators', needs: ['an operator token'] },
    ...{ pattern, mediaType, cacheControl: 'no-cache', validators: 'etag' },
    headers: {
      'content-security-policy': /^default-src 'none'; /,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    },
  });

const CREDENTIAL = { type: 'card', credential: { type: 'spt', token: 'spt_1' } };
const CHECKOUT_BODIES: Readonly<Record<Operation, unknown>> = {
  createCheckoutSession: CART,
  updateCheckoutSession: { line_items: CART.line_items },
  getCheckoutSession: undefined,
  completeCheckoutSession: { payment_data: { handler_id: 'card', instrument: CREDENTIAL } },
  cancelCheckoutSession: {},
};

const checkout = (operation: Operation, allow: Route['allow']): Route => {
  const { method, path, success } = OPERATION_RULES[operation];
  const body = CHECKOUT_BODIES[operation];
  return readable({
    ...{ audience: 'agents', auth: 'checkout token', needs: ['acp'], matchedBy: 'checkout adapter' },
    ...{ method, pattern: `/acp${path}`, allow, status: success, mediaType: 'application/json' },
    // A POST has a new key each time: a repeated one is answered from the first.
    sent: () => ({ headers: rightHeaders(method), ...(body === undefined ? {} : { body: JSON.stringify(body) }) }),
  });
};

const inPlace = (method: Route['method'], pattern: string, changes: Partial<Route>): Route => {
  const sent = method === 'GET' ? {} : { headers: { 'content-type': 'application/json' }, body: '{"said":"Hello"}' };
  return readable({
    ...{ audience: 'agents', matchedBy: 'address', needs: ['sale in place'] },
    ...{ method, pattern, allow: method === 'GET' ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS', sent: () => sent },
    ...{ mediaType: 'application/json', cacheControl: undefined },
    ...changes,
  });
};

const OFFER = /^[A-Za-z0-9+/]{100,}={0,2}$/;
/** Headers of a 402, whose body depends on what its reader accepts. */
const OFFERED = { 'payment-required': OFFER, vary: 'Accept' };
/** What a 402 in place is. */
const PAID_IN_PLACE = {
  ...{ status: 402, mediaType: JSON_TYPE, cacheControl: 'no-store' },
  headers: OFFERED,
} as const;

export const ROUTES: readonly Route[] = [
  probe('agents', '/health'),
  probe('agents', '/ready'),
  published('/.well-known/agent-commerce', { cacheControl: 'no-cache', validators: 'etag' }),
  published('/api/resources', { cacheControl: 'no-cache', validators: 'etag' }),
  published('/api/resources/:id', {
    ...{ path: '/api/resources/cities', cacheControl: 'no-cache', validators: 'etag' },
  }),
  ...['/openapi.json', '/.well-known/x402'].map((pattern) => document(pattern)),
  document('/llms.txt', { mediaType: 'text/plain; charset=utf-8' }),
  document('/', { headers: { vary: 'Accept' } }),
  published('/.well-known/jwks.json', { needs: ['any key'] }),
  published('/.well-known/did.json', { needs: ['a key of receipts', 'any key'] }),
  // Without the proof that paid there is no purchase.
  readable({
    ...{ audience: 'agents', pattern: '/api/purchases/:receiptId', path: `/api/purchases/${receiptId()}`, status: 404 },
    ...{ headers: { vary: 'Accept' }, needs: ['a key of receipts', 'any key'] },
  }),
  invoke('cities', {}, { mediaType: 'application/json', cacheControl: undefined }),
  invoke('market_report', { city: 'Berlin' }, { status: 402, headers: OFFERED }),
  readable({
    ...{ audience: 'agents', pattern: '/api/resources/:id/invoke', path: '/api/resources/market_report/invoke' },
    ...{ allow: 'POST', status: 402, headers: { ...OFFERED, allow: 'POST' }, needs: ['http'] },
  }),
  ...['/mcp', '/mcp/'].map((pattern) =>
    callable({
      ...{ audience: 'agents', pattern, needs: ['mcp'] },
      ...{ body: { jsonrpc: '2.0', id: 1, method: 'tools/list' }, mediaType: 'application/json' },
    }),
  ),
  a2a('/a2a'),
  a2a('/a2a/'),
  published('/.well-known/agent-card.json', { audience: 'agents', needs: ['a2a'] }),
  published('/a2a/.well-known/agent-card.json', { audience: 'agents', needs: ['a2a'] }),
  published('/.well-known/acp.json', { audience: 'agents', cacheControl: 'public, max-age=3600', needs: ['acp'] }),
  checkout('createCheckoutSession', 'POST'),
  checkout('updateCheckoutSession', 'POST, GET'),
  checkout('getCheckoutSession', 'POST, GET'),
  checkout('completeCheckoutSession', 'POST'),
  checkout('cancelCheckoutSession', 'POST'),
  inPlace('GET', '/cities', {}),
  inPlace('GET', '/document', {
    ...{ mediaType: 'text/plain', cacheControl: 'public, max-age=60', validators: 'etag and date' },
    headers: { 'accept-ranges': 'bytes' },
  }),
  inPlace('POST', '/echo', {}),
  inPlace('GET', '/reports/{city}', { ...PAID_IN_PLACE, path: '/reports/Berlin' }),
  ...(['GET', 'POST'] as const).map((method) =>
    inPlace(method, '/flaky/{failures}', {
      ...{ ...PAID_IN_PLACE, path: '/flaky/1', allow: 'GET, HEAD, POST, OPTIONS' },
      ...(method === 'POST' ? { sent: () => ({ headers: { 'content-type': 'application/json' }, body: '{}' }) } : {}),
    }),
  ),
  operators('/api/receipts'),
  operators('/api/receipts/unpaid'),
  operators('/api/events'),
  operators('/api/events/stream', { mediaType: 'text/event-stream', headers: { 'x-accel-buffering': 'no' } }),
  ...CONSOLE_FILES.map(({ path, mediaType }) => page(path, mediaType)),
  probe('management', '/health'),
  probe('management', '/ready'),
  readable({
    ...{ app: 'management', audience: 'pod', pattern: '/metrics' },
    mediaType: /^text\/plain; version=0\.0\.4/,
  }),
  ...APP_PROBES.map((kind) =>
    readable({
      ...{ app: 'management', audience: 'pod', pattern: `/app-probe/${kind}`, allow: 'GET' },
      mediaType: 'text/plain; charset=utf-8',
    }),
  ),
  readable({ app: 'management', audience: 'pod', pattern: '/routing' }),
  hook('/drain'),
  hook('/release'),
];

/** The methods that a path answers with more than a refusal. `rows`: all of the path. */
export function answeredMethods(rows: readonly Route[]): readonly string[] {
  const [{ allow } = { allow: '' }] = rows;
  const asked = allow === 'POST' && rows.some(({ method }) => method === 'GET') ? ['GET', 'HEAD'] : [];
  return [...allow.split(', '), ...asked];
}

/** The path of a row, with a session of its own where it has one. */
export async function pathOf({ path }: Route, agents: Express): Promise<string> {
  if (!path.includes(SESSION_PLACE)) return path;
  const sent = { headers: rightHeaders('POST'), body: JSON.stringify(CART) };
  const { text } = await send(agents, 'POST', '/acp/checkout_sessions', sent);
  return path.replace(SESSION_PLACE, (JSON.parse(text) as { readonly id: string }).id);
}
