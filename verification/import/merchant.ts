/**
 * A merchant that answers each operation of an OpenAPI document, if `express-openapi-validator`
 * finds that the request fits it: path, query with style and explode, media type and body. The
 * answer tells what was read, as that library parsed it.
 */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type ErrorRequestHandler, type Express } from 'express';
import { middleware } from 'express-openapi-validator';
import { isObject, type Json, type JsonObject } from '../../src/json/types.ts';

export interface Merchant {
  readonly url: string;
  close(): Promise<void>;
}

/** `form`: whether bodies are forms, of which every value is a text. */
export async function startMerchant(document: JsonObject, { form }: { readonly form: boolean }): Promise<Merchant> {
  const apps = routesOf(document, form);
  const server = createServer((req, res) => answer(apps, req, res));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

interface Route {
  readonly pattern: RegExp;
  readonly app: () => Express;
}

function answer(routes: readonly Route[], req: IncomingMessage, res: ServerResponse): void {
  const path = (req.url ?? '').split('?')[0] ?? '';
  const route = routes.find(({ pattern }) => pattern.test(path));
  if (route !== undefined) route.app()(req, res);
  else res.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify({ message: `no path ${path}` }));
}

/** A path without parameters goes before one with them, as OpenAPI says. */
function routesOf(document: JsonObject, form: boolean): readonly Route[] {
  const paths = isObject(document['paths']) ? document['paths'] : {};
  const base = basePath(document);
  return Object.entries(paths)
    .map(([path, item]) => ({
      parameters: path.split('{').length,
      pattern: new RegExp(
        `^${(base + path)
          .split(/\{[^{}]*\}/)
          .map(RegExp.escape)
          .join('[^/]+')}$`,
      ),
      app: onDemand(() => appOf(partOf(document, path, item), form)),
    }))
    .toSorted((a, b) => a.parameters - b.parameters);
}

function basePath({ servers }: JsonObject): string {
  const [server] = Array.isArray(servers) ? (servers as readonly Json[]) : [];
  const url = isObject(server) && typeof server['url'] === 'string' ? server['url'] : '/';
  return new URL(url, 'http://merchant.invalid').pathname.replace(/\/$/, '');
}

/** The library hashes the whole document for each operation, so each path has one of its own. */
function partOf(document: JsonObject, path: string, item: Json): JsonObject {
  const { openapi, info, servers = [{ url: '/' }], components } = document;
  const kept: Record<string, Record<string, Json>> = {};
  const waiting: Json[] = [item];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (value === null || typeof value !== 'object') continue;
    const reference = isObject(value) ? value['$ref'] : undefined;
    const [, kind = '', name = ''] =
      (typeof reference === 'string' && /^#\/components\/([^/]+)\/([^/]+)/.exec(reference)) || [];
    const all = isObject(components) ? components[kind] : undefined;
    const target = isObject(all) ? all[decodeURIComponent(name)] : undefined;
    if (target !== undefined && kept[kind]?.[name] === undefined) {
      kept[kind] = { ...kept[kind], [decodeURIComponent(name)]: target };
      waiting.push(target);
    }
    waiting.push(...(Object.values(value) as readonly Json[]));
  }
  const schemes = isObject(components) ? components['securitySchemes'] : undefined;
  return {
    ...{ openapi: openapi ?? '', info: info ?? {}, servers },
    paths: { [path]: item },
    components: { ...kept, ...(schemes === undefined ? {} : { securitySchemes: schemes }) },
  };
}

function appOf(part: JsonObject, form: boolean): Express {
  const app = express();
  app.use(express.json({ strict: false, type: ['application/json', 'application/*+json'], limit: '10mb' }));
  app.use(express.urlencoded({ extended: true, limit: '10mb', arrayLimit: 100 } as object));
  app.use(
    middleware({
      apiSpec: normalized(structuredClone(part)) as never,
      validateApiSpec: false,
      validateSecurity: false,
      validateResponses: false,
      validateRequests: { allowUnknownQueryParameters: false, coerceTypes: form ? 'array' : false },
    }),
  );
  app.use((req, res) => {
    res.json({
      query: req.query,
      params: (req as { openapi?: { pathParams?: object } }).openapi?.pathParams ?? {},
      body: req.body ?? null,
    });
  });
  const refuse: ErrorRequestHandler = (error, _req, res, _next) => {
    const { status = 500, message } = error as { readonly status?: number; readonly message: string };
    res.status(status).json({ message: message.slice(0, 1_000) });
  };
  app.use(refuse);
  return app;
}

/** `nullable` without a type means nothing (3.0.3), and the library cannot read it. */
function normalized(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  const object = value as Record<string, unknown>;
  if (typeof object['nullable'] === 'boolean' && typeof object['type'] !== 'string') delete object['nullable'];
  for (const inner of Object.values(object)) normalized(inner);
  return value;
}

function onDemand<Made>(make: () => Made): () => Made {
  let made: Made | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
