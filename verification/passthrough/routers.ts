/**
 * The merchants whose routers match more than the template of what they sell: mounts, wildcards,
 * expressions without an end, suffixes of formats, starts and ends compared by hand, and paths that
 * are the value of a parameter.
 */

import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import path from 'node:path';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import type { MerchantKind, Ran } from './merchant.ts';

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
