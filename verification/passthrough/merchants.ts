/** The merchants that route with a framework from npm, each as its own documents set it up. */

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type RequestListener } from 'node:http';
import path from 'node:path';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import Router from '@koa/router';
import express, { type Express } from 'express';
import express4 from 'express4';
import fastify, { type FastifyServerOptions } from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import methodOverride from 'method-override';
import type { MerchantKind, Ran } from './merchant.ts';
import { METHODS } from './spellings.ts';

/** Every framework, in each way of routing that reads paths differently. */
export const FRAMEWORKS: readonly MerchantKind[] = [
  { name: 'Express 4', build: (ran) => withExpress(express4(), ran) },
  { name: 'Express 5', build: (ran) => withExpress(express(), ran) },
  { name: 'Express 5, method-override', build: (ran) => withExpress(overriding(express()), ran) },
  { name: 'Express 5, mounted routers', build: mountedRouters },
  { name: 'Fastify', build: (ran) => withFastify({}, ran) },
  { name: 'Fastify, tolerant', build: (ran) => withFastify({ routerOptions: TOLERANT }, ran) },
  {
    name: 'Fastify, tolerant, semicolons',
    build: (ran) => withFastify({ routerOptions: SEMICOLONS }, ran),
  },
  { name: 'Hono', build: (ran) => withHono(new Hono(), ran) },
  { name: 'Hono, not strict', build: (ran) => withHono(new Hono({ strict: false }), ran) },
  { name: 'Koa', build: withKoa },
];

const TOLERANT = { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, caseSensitive: false } as const;
const SEMICOLONS = { ...TOLERANT, useSemicolonDelimiter: true };
const SOLD_TEXT = 'sold';
const OTHER_TEXT = 'free';

function withExpress(app: Express, ran: Ran): RequestListener {
  const sell = (req: express.Request, res: express.Response): void => {
    ran(req);
    res.send(SOLD_TEXT);
  };
  app.get('/reports/:city', sell);
  app.get('/prices.csv', sell);
  app.post('/orders/:id/confirm', sell);
  app.use((_req, res) => void res.send(OTHER_TEXT));
  app.use((_error: unknown, _req: express.Request, res: express.Response, _next: express.NextFunction) => {
    res.status(400).end();
  });
  return app;
}

/** Takes the method from the places that its documents and other frameworks know. */
function overriding(app: Express): Express {
  for (const getter of ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', '_method'])
    app.use(methodOverride(getter, { methods: [...METHODS] }));
  return app;
}

function mountedRouters(ran: Ran): RequestListener {
  const app = express();
  const reports = express.Router();
  const orders = express.Router();
  reports.get('/:city', (req, res) => {
    ran(req);
    res.send(SOLD_TEXT);
  });
  orders.post('/confirm', (req, res) => {
    ran(req);
    res.send(SOLD_TEXT);
  });
  app.use('/reports', reports);
  app.use('/orders/:id', orders);
  return withExpress(app, ran);
}

async function withFastify(options: FastifyServerOptions, ran: Ran): Promise<RequestListener> {
  let listener: RequestListener = () => undefined;
  const app = fastify({
    ...options,
    serverFactory: (handler) => {
      listener = handler as RequestListener;
      return createServer();
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  const sell = async ({ raw }: { readonly raw: IncomingMessage }): Promise<string> => {
    ran(raw);
    return SOLD_TEXT;
  };
  app.get('/reports/:city', sell);
  app.get('/prices.csv', sell);
  app.post('/orders/:id/confirm', sell);
  app.setNotFoundHandler(async () => OTHER_TEXT);
  await app.ready();
  return listener;
}

function withHono(app: Hono, ran: Ran): RequestListener {
  const listener = getRequestListener((request, env) => app.fetch(request, env));
  const sell = (context: { readonly env: unknown; text(body: string): Response }): Response => {
    ran((context.env as HttpBindings).incoming);
    return context.text(SOLD_TEXT);
  };
  app.get('/reports/:city', sell);
  app.get('/prices.csv', sell);
  app.post('/orders/:id/confirm', sell);
  app.notFound((context) => context.text(OTHER_TEXT));
  return (req, res) => void listener(req, res);
}

function withKoa(ran: Ran): RequestListener {
  const app = new Koa();
  const router = new Router();
  const sell = ({ req, res }: Pick<Koa.Context, 'req' | 'res'>, context: { body: unknown }): void => {
    ran(req);
    context.body = SOLD_TEXT;
    res.statusCode = 200;
  };
  router.get('/reports/:city', (context) => sell(context, context));
  router.get('/prices.csv', (context) => sell(context, context));
  router.post('/orders/:id/confirm', (context) => sell(context, context));
  app.silent = true;
  app.use(router.routes()).use((context) => {
    context.body = OTHER_TEXT;
  });
  const handle = app.callback();
  return (req, res) => void handle(req, res);
}

/** Each reads the path of a request; undefined where it refuses it. */
export const READERS: readonly MerchantKind[] = [
  reader('bare URL', ({ url = '/' }) => urlPath(url)),
  reader('bare, decoded and normalised, any method', ({ url = '/' }) => normalisedPath(url), { anyMethod: true }),
  reader('servlet container', ({ url = '/' }) => servletPath(url)),
  reader('Windows', ({ url = '/' }) => windowsPath(url), { anyMethod: true }),
  reader('path from headers', ({ url = '/', headers }) => urlPath(headerPath(headers) ?? url)),
  reader('everything at once', ({ url = '/' }) => mostTolerantPath(url), { anyMethod: true }),
];

const REPORT = /^\/reports\/[^/]+$/;
const PRICES = /^\/prices\.csv$/;
const CONFIRM = /^\/orders\/[^/]+\/confirm$/;

function reader(
  name: string,
  read: (req: IncomingMessage) => string | undefined,
  { anyMethod = false }: { readonly anyMethod?: boolean } = {},
): MerchantKind {
  const build = (ran: (req: IncomingMessage) => void): RequestListener => {
    return function answer(req, res) {
      const found = read(req);
      const isGet = anyMethod || req.method === 'GET' || req.method === 'HEAD';
      const isPost = anyMethod || req.method === 'POST';
      if (found === undefined) res.statusCode = 400;
      else if ((isGet && (REPORT.test(found) || PRICES.test(found))) || (isPost && CONFIRM.test(found))) ran(req);
      res.end('bare');
    };
  };
  return { name, build };
}

function urlPath(target: string): string | undefined {
  return URL.parse(target, 'http://shop.test')?.pathname;
}

function normalisedPath(target: string): string | undefined {
  const decoded = decodedOnce(pathOf(target));
  return decoded && path.posix.normalize(decoded.replaceAll('\\', '/')).toLowerCase().replace(/\/$/, '');
}

/** Path parameters go before anything is decoded, then slashes are folded and dots resolved. */
function servletPath(target: string): string | undefined {
  const decoded = decodedOnce(pathOf(target).replaceAll(/;[^/]*/g, ''));
  return decoded && path.posix.normalize(decoded.replaceAll('\\', '/'));
}

/** `%u` escapes are read, and each segment loses the spaces and dots behind it. */
function windowsPath(target: string): string | undefined {
  const decoded = decodedOnce(readPercentU(pathOf(target))) ?? latin1(pathOf(target));
  return trimmedSegments(path.posix.normalize(decoded.replaceAll('\\', '/')).toLowerCase());
}

/** Decodes three times, overlong forms too, cuts at nulls, and compares letters without case. */
function mostTolerantPath(target: string): string {
  let text = pathOf(target.replace(/^[a-z]+:\/\/[^/]*/i, ''));
  for (let round = 0; round < 3; round += 1)
    text = readPercentU(text).replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => decodedOnce(run) ?? overlong(latin1(run)));
  const [before = ''] = text.normalize('NFKC').split('\0');
  const plain = before.replaceAll('\\', '/').replaceAll(/;[^/]*/g, '');
  const resolved = path.posix.normalize(plain.replaceAll(/(?<=\/\.{1,2}) +(?=\/|$)/g, ''));
  return trimmedSegments([...resolved].map((letter) => letter.toUpperCase().toLowerCase()).join(''));
}

/** Header names as CGI has them, where a hyphen and an underscore are the same. */
function headerPath(headers: IncomingHttpHeaders): string | undefined {
  const named = Object.entries(headers).find(([name]) => REWRITTEN.test(name.replaceAll('_', '-')));
  return named && String(named[1]);
}

const REWRITTEN = /^x-(?:original-ur[li]|rewrite-url)$/;

function pathOf(target: string): string {
  return target.split(/[?#]/)[0] ?? '';
}

function trimmedSegments(text: string): string {
  return text.replaceAll(/[. ]+(?=\/|$)/g, '').replace(/\/$/, '');
}

function decodedOnce(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function readPercentU(text: string): string {
  return text.replaceAll(/%u([0-9a-f]{4})/gi, (_escape, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
}

function latin1(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_escape, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

/** Two and three bytes for a letter that one byte holds, as careless decoders read them. */
function overlong(text: string): string {
  return text
    .replaceAll(/[\xc0\xc1][\x80-\xbf]/g, (bytes) => letter(bytes.charCodeAt(0) & 0x1f, bytes.charCodeAt(1)))
    .replaceAll(/\xe0[\x80-\x9f][\x80-\xbf]/g, (bytes) => letter(bytes.charCodeAt(1) & 0x3f, bytes.charCodeAt(2)));
}

function letter(high: number, low: number): string {
  return String.fromCharCode((high << 6) | (low & 0x3f));
}

export const ROUTERS: readonly MerchantKind[] = [
  { name: 'Express 5, mounted handlers', build: (ran) => mounted(ran) },
  { name: 'Express 5, wildcards', build: (ran) => wildcards(ran) },
  { name: 'Express 5, expressions without end', build: (ran) => expressions(ran) },
  { name: 'Express 5, static extensions', build: (ran) => extensions(ran) },
  { name: 'Koa, start of the path', build: (ran) => starts(ran) },
  { name: 'Fastify, wildcards', build: fastifyWildcards },
  { name: 'Hono, {.+}', build: (ran) => honoWildcards(ran) },
  byHand('end of the path, by hand', ({ pathname }) => ENDS.test(pathname)),
  byHand('any suffix of a format, by hand', ({ pathname }) => WHOLE.test(pathname.replace(/\.[a-z]+$/, ''))),
  byHand('path from a parameter', ({ searchParams }) =>
    ['path', 'url', 'rest_route', 'r', 'page'].some((name) =>
      WHOLE.test(`/${(searchParams.get(name) ?? '').replace(/^\/+/, '')}`),
    ),
  ),
  byHand('path from the whole query', ({ search }) => WHOLE.test(decoded(search.slice(1)))),
];

const WHOLE = /^(?:\/reports\/[^/]+|\/prices\.csv|\/orders\/[^/]+\/confirm)$/;
const ENDS = /(?:\/reports\/[^/]+|\/prices\.csv|\/orders\/[^/]+\/confirm)(?:\.json)?$/;

function mounted(ran: Ran): RequestListener {
  const app = express();
  const sell = seller(ran);
  for (const at of ['/reports/:city', '/prices.csv', '/orders/:id/confirm']) app.use(at, sell);
  return withRest(app);
}

function wildcards(ran: Ran): RequestListener {
  const app = express();
  const sell = seller(ran);
  for (const at of ['/reports/*city', '/*any/reports/:city', '/prices.csv/*rest', '/prices.csv']) app.get(at, sell);
  app.post('/orders/*id/confirm', sell);
  return withRest(app);
}

function expressions(ran: Ran): RequestListener {
  const app = express();
  app.use([/^\/reports\/[^/]+/, /^\/prices\.csv/, /^\/orders\/[^/]+\/confirm/], seller(ran));
  return withRest(app);
}

/** A sold file under its name with and without the ending that servers of files try. */
function extensions(ran: Ran): RequestListener {
  const app = express();
  app.use((req, res, next) => {
    const { name, dir } = path.posix.parse(req.path.replace(/\/index\.html$/, ''));
    if (WHOLE.test(req.path.replace(/\.(?:html|gz|br)$/, '')) || WHOLE.test(path.posix.join(dir, name))) {
      ran(req);
      res.send('sold');
    } else next();
  });
  return withRest(app);
}

function seller(ran: Ran): express.RequestHandler {
  return (req, res) => {
    ran(req);
    res.send('sold');
  };
}

function withRest(app: express.Express): RequestListener {
  app.use((_req, res) => void res.send('free'));
  app.use((_error: unknown, _req: express.Request, res: express.Response, _next: express.NextFunction) => {
    res.status(400).end();
  });
  return app;
}

function starts(ran: Ran): RequestListener {
  const app = new Koa();
  app.silent = true;
  app.use((context) => {
    const sold = ['/reports/', '/prices.csv'].some((start) => context.path.startsWith(start) && context.path !== start);
    if (sold || /^\/orders\/[^/]+\/confirm/.test(context.path)) ran(context.req);
    context.body = 'answered';
  });
  const handle = app.callback();
  return (req, res) => void handle(req, res);
}

async function fastifyWildcards(ran: Ran): Promise<RequestListener> {
  let listener: RequestListener = () => undefined;
  const app = fastify({
    serverFactory: (handler) => {
      listener = handler as RequestListener;
      return createServer();
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  const sell = async ({
    raw,
    params,
  }: {
    readonly raw: IncomingMessage;
    readonly params: unknown;
  }): Promise<string> => {
    if ((params as Record<string, string>)['*'] !== '') ran(raw);
    return 'sold';
  };
  for (const at of ['/reports/*', '/prices.csv', '/prices.csv/*']) app.all(at, sell);
  app.all('/orders/:id/confirm', sell);
  app.all('/orders/:id/confirm/*', sell);
  app.setNotFoundHandler(async () => 'free');
  await app.ready();
  return listener;
}

function honoWildcards(ran: Ran): RequestListener {
  const app = new Hono();
  const listener = getRequestListener((request, env) => app.fetch(request, env));
  const sell = (context: { readonly env: unknown; text(body: string): Response }): Response => {
    ran((context.env as HttpBindings).incoming);
    return context.text('sold');
  };
  app.all('/reports/:city{.+}', sell);
  app.all('/prices.csv/*', sell);
  app.all('/orders/:id{.+}/confirm', sell);
  app.notFound((context) => context.text('free'));
  return (req, res) => void listener(req, res);
}

function byHand(name: string, sells: (url: URL) => boolean): MerchantKind {
  return {
    name,
    build: (ran) => (req, res) => {
      const url = URL.parse(req.url ?? '/', 'http://shop.test');
      if (url === null) res.statusCode = 400;
      else if (sells(url)) ran(req);
      res.end('answered');
    },
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
