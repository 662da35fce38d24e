/** The merchants that route with a framework from npm, each as its own documents set it up. */

import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
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
