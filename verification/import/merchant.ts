/**
 * A merchant that answers each operation of an OpenAPI document, if `express-openapi-validator`
 * finds that the request fits it: path, query with style and explode, media type and body. The
 * answer tells what was read, as that library parsed it. The library lets one thing pass that
 * OpenAPI does not: a pair for each item where a list belongs into one pair.
 */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type ErrorRequestHandler, type Express } from 'express';
import { middleware } from 'express-openapi-validator';
import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';
import { KNOWN_FORMATS } from '../../src/resources/schemas/ajv.ts';

/** Their members have names of the document, not of OpenAPI. */
const NAME_MAPS: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'schemas', 'paths']);
const NUMBERS: ReadonlySet<string> = new Set(['int32', 'int64', 'float', 'double']);

export interface Merchant {
  readonly url: string;
  /** Why it refused the last request that it refused. */
  lastRefusal(): string;
  close(): Promise<void>;
}

/**
 * `form`: whether bodies are forms, of which every value is a text. `called`: the requests that
 * will come.
 */
export async function startMerchant(
  document: JsonObject,
  { form, called }: { readonly form: boolean; readonly called: readonly Called[] },
): Promise<Merchant> {
  let refusal = '';
  const judge = (items: JsonObject): Express =>
    appOf(partOf(document, items), form, (why) => {
      refusal = why;
    });
  const apps = judged(routesOf(document), called, judge);
  const server = createServer((req, res) => answer(apps, req, res));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    lastRefusal: () => refusal,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** `path`: may have parameters in braces. */
interface Called {
  readonly method: string;
  readonly path: string;
}

interface Route {
  readonly path: string;
  readonly item: Json;
  readonly pattern: RegExp;
  readonly methods: ReadonlySet<string>;
}

interface JudgedRoute extends Route {
  readonly app: () => Express;
}

/**
 * The library compiles what it needs for each app, and hashes its document for each operation: so
 * an app has some paths, not one and not all.
 */
const PATHS_OF_APP = 30;

function answer(routes: readonly JudgedRoute[], req: IncomingMessage, res: ServerResponse): void {
  const path = (req.url ?? '').split('?')[0] ?? '';
  const route = routeOf(routes, { method: req.method ?? '', path });
  if (route !== undefined) route.app()(req, res);
  else res.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify({ message: `no path ${path}` }));
}

function routeOf<Some extends Route>(routes: readonly Some[], { method, path }: Called): Some | undefined {
  return routes.find(({ pattern, methods }) => pattern.test(path) && methods.has(method));
}

/** With the apps that judge them: those that are called share some. */
function judged(
  routes: readonly Route[],
  called: readonly Called[],
  judge: (items: JsonObject) => Express,
): readonly JudgedRoute[] {
  const wanted = new Set(
    called.map(({ method, path }) => routeOf(routes, { method, path: path.replaceAll(/\{[^{}]*\}/g, 'x') })),
  );
  const apps = new Map<Route, () => Express>();
  const share = (some: readonly Route[]): void => {
    const app = onDemand(() => judge(Object.fromEntries(some.map(({ path, item }) => [path, item]))));
    for (const route of some) apps.set(route, app);
  };
  const together = routes.filter((route) => wanted.has(route));
  for (let at = 0; at < together.length; at += PATHS_OF_APP) share(together.slice(at, at + PATHS_OF_APP));
  return routes.map((route) => {
    if (!wanted.has(route)) share([route]);
    return { ...route, app: apps.get(route) ?? assert.fail(route.path) };
  });
}

/** A path without parameters goes before one with them, as OpenAPI says. */
function routesOf(document: JsonObject): readonly Route[] {
  const paths = isObject(document['paths']) ? document['paths'] : {};
  const base = basePath(document);
  return Object.entries(paths)
    .map(([path, item]) => ({
      ...{ path, item },
      parameters: path.split('{').length,
      pattern: new RegExp(
        `^${(base + path)
          .split(/\{[^{}]*\}/)
          .map(RegExp.escape)
          .join('[^/]+')}$`,
      ),
      methods: new Set(Object.keys(isObject(item) ? item : {}).map((name) => name.toUpperCase())),
    }))
    .toSorted((a, b) => a.parameters - b.parameters);
}

function basePath({ servers }: JsonObject): string {
  const [server] = Array.isArray(servers) ? (servers as readonly Json[]) : [];
  const url = isObject(server) && typeof server['url'] === 'string' ? server['url'] : '/';
  return new URL(url, 'http://merchant.invalid').pathname.replace(/\/$/, '');
}

/** A document of these paths, with what their requests refer to. Answers are not judged. */
function partOf(document: JsonObject, items: JsonObject): JsonObject {
  const { openapi, info, components } = document;
  const requestsOf = (item: Json): JsonObject => {
    const standing = withoutPathReferences(item, document);
    return Object.fromEntries(
      Object.entries(isObject(standing) ? standing : {}).map(([name, operation]) => [
        name,
        isObject(operation) ? { ...operation, responses: { 200: { description: '' } }, callbacks: {} } : operation,
      ]),
    );
  };
  const requests = Object.fromEntries(Object.entries(items).map(([path, item]) => [path, requestsOf(item)]));
  const kept: Record<string, Record<string, Json>> = {};
  const waiting: Json[] = [requests];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (value === null || typeof value !== 'object') continue;
    waiting.push(...(Object.values(value) as readonly Json[]));
    const reference = isObject(value) ? value['$ref'] : undefined;
    const [kind = '', name = ''] =
      typeof reference === 'string' ? reference.split('/').slice(2).map(decodeURIComponent) : [];
    const all = isObject(components) ? components[kind] : undefined;
    const target = isObject(all) ? all[name] : undefined;
    if (target === undefined || kept[kind]?.[name] !== undefined) continue;
    kept[kind] = { ...kept[kind], [name]: target };
    waiting.push(target);
  }
  const securitySchemes = (isObject(components) ? components['securitySchemes'] : undefined) ?? {};
  return {
    ...{ openapi: openapi ?? '', info: info ?? {}, servers: [{ url: basePath(document) || '/' }] },
    paths: requests,
    components: { ...kept, securitySchemes },
  };
}

/** What stands in other paths is written out: a part does not have them. */
function withoutPathReferences(value: Json, document: JsonObject): Json {
  if (Array.isArray(value)) return value.map((item) => withoutPathReferences(item as Json, document));
  if (!isObject(value)) return value;
  const reference = value['$ref'];
  if (typeof reference === 'string' && reference.startsWith('#/paths/')) {
    const tokens = reference.split('/').slice(1);
    const names = tokens.map((token) => decodeURIComponent(token).replaceAll('~1', '/').replaceAll('~0', '~'));
    const target = names.reduce<Json>((node, name) => (node as JsonObject | null)?.[name] ?? null, document);
    return withoutPathReferences(target, document);
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, withoutPathReferences(inner, document)]),
  );
}

function appOf(part: JsonObject, form: boolean, onRefused: (why: string) => void): Express {
  const app = express();
  app.set('query parser', 'extended');
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
    const { openapi } = req as { readonly openapi?: { readonly pathParams?: object } };
    // Without it the library has judged nothing.
    if (openapi === undefined) res.status(500).json({ message: 'the request was not judged' });
    else res.json({ query: req.query, params: openapi.pathParams ?? {}, body: req.body ?? null });
  });
  const refuse: ErrorRequestHandler = (error, _req, res, _next) => {
    const { status = 500, message } = error as { readonly status?: number; readonly message: string };
    onRefused(`${status} ${message.slice(0, 500)}`);
    res.status(status).json({ message: message.slice(0, 500) });
  };
  app.use(refuse);
  return app;
}

/**
 * The same document without what this library makes more of than OpenAPI does: `nullable` without a
 * type and `readOnly` of a parameter mean nothing, a body is optional unless it is said, a format
 * may be unknown, a pattern need not compile with the flag `u`, and a default, which it would
 * insert unseen, need not fit. A deepObject in a branch is absent when it is absent.
 */
function normalized(part: unknown): unknown {
  const readOnlyParameters = new Set<string>();
  const writable = (schema: unknown): void => {
    if (schema === null || typeof schema !== 'object') return;
    const { $ref: reference, allOf, anyOf, oneOf } = schema as Record<string, unknown>;
    if (typeof reference === 'string') readOnlyParameters.add(reference);
    delete (schema as { readOnly?: unknown }).readOnly;
    for (const part of [allOf, anyOf, oneOf].flat()) writable(part);
  };
  const walk = (value: unknown, isSchema: boolean): void => {
    if (value === null || typeof value !== 'object') return;
    const object = value as Record<string, unknown>;
    if (isSchema) {
      if (typeof object['nullable'] === 'boolean' && typeof object['type'] !== 'string') delete object['nullable'];
      const { format } = object;
      if (typeof format === 'string' && !KNOWN_FORMATS.includes(format) && !NUMBERS.has(format))
        delete object['format'];
      delete object['default'];
      if (typeof object['pattern'] === 'string' && !compilesWithUnicode(object['pattern'])) delete object['pattern'];
    }
    const { in: place, schema, requestBody } = object as Record<string, Record<string, unknown> | undefined>;
    if (typeof place === 'string') writable(schema);
    if (object['style'] === 'deepObject') object['schema'] = { allOf: [schema] };
    if (requestBody && requestBody['$ref'] === undefined) requestBody['required'] ??= false;
    for (const [name, inner] of Object.entries(object)) walk(inner, !NAME_MAPS.has(name));
  };
  walk(part, true);
  const { components } = part as { readonly components: Components };
  for (const body of Object.values(components.requestBodies ?? {})) body.required ??= false;
  for (const [name, schema] of Object.entries(components.schemas ?? {}))
    if (readOnlyParameters.has(`#/components/schemas/${name}`)) delete schema.readOnly;
  return part;
}

function compilesWithUnicode(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u') !== undefined;
  } catch {
    return false;
  }
}

interface Components {
  readonly schemas?: Readonly<Record<string, { readOnly?: boolean }>>;
  readonly requestBodies?: Readonly<Record<string, { required?: boolean }>>;
}

function onDemand<Made>(make: () => Made): () => Made {
  let made: Made | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
