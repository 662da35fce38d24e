/**
 * `/openapi.json`: what is sold over HTTP, for clients that call from a description and for
 * catalogues of paid services. Made once at start, like the list of resources.
 */

import release from '../../package.json' with { type: 'json' };
import { isObject, type Json, type JsonObject } from '../json/types.ts';
import { KNOWN_NETWORKS } from '../payments/pricing/networks.ts';
import { invokeUrl } from '../payments/x402/wire/challenge.ts';
import { carriesBody } from './backend-request.ts';
import { describedWithPrice, type ListedResource } from './listing.ts';
import { PUBLISHED } from './published.ts';
import { queryProperties } from './reverse-template.ts';
import type { CatalogueSettings, ResourceConfig } from './settings.ts';
import { type StaticDocument, staticDocument } from './static-document.ts';
import { type PathTemplate, pathShape, readTemplate, templateParameters } from './url-template.ts';

/**
 * Resources in the document, the first of the configuration: it is made in one turn of the event
 * loop, and catalogues read no further.
 */
export const MOST_DESCRIBED = 1_000;

const HOW_TO_CALL =
  'POST the input as JSON to an invoke path, or call an address as it is described. A 402 has the price; ' +
  'an x402 client signs it and asks again. A call without any input is answered with the price.';

/** A resource as it is listed, with what of its configuration says where its input goes. */
interface Described {
  readonly listed: ListedResource;
  readonly config: ResourceConfig;
}

/** Path items by path, each an object of operations by method in lower case. */
type Paths = Record<string, Record<string, Json>>;

/** OpenAPI 3.1.0. `listed`: in the order of the configuration. */
export function openApiDocument(settings: CatalogueSettings, listed: readonly ListedResource[]): StaticDocument {
  const { merchant, resources, publish } = settings;
  const sold = resources.flatMap((config, place): readonly Described[] => {
    const entry = listed[place];
    return entry !== undefined && isSoldOverHttp(entry) ? [{ listed: entry, config }] : [];
  });
  const shown = sold.slice(0, MOST_DESCRIBED);
  return staticDocument({
    openapi: '3.1.0',
    info: { title: merchant.name, version: release.version, 'x-guidance': HOW_TO_CALL },
    servers: [{ url: merchant.publicBaseUrl }],
    ...(publish.has('llms')
      ? { 'x-agentcash-guidance': { llmsTxtUrl: `${merchant.publicBaseUrl}${PUBLISHED.llms}` } }
      : {}),
    ...(shown.length < sold.length ? { 'x-resources-offered': sold.length } : {}),
    paths: pathsOf(shown, settings),
  });
}

/** Whether a plain HTTP client can call it. */
export function isSoldOverHttp({ exposedVia }: Pick<ListedResource, 'exposedVia'>): boolean {
  return exposedVia.includes('http') || exposedVia.includes('origin');
}

function pathsOf(all: readonly Described[], settings: CatalogueSettings): Paths {
  const paths: Paths = Object.create(null);
  /** Paths in place by their shape: OpenAPI has one name for each parameter of a path. */
  const named = new Map<string, string>();
  for (const { listed, config } of all) {
    const common = operationOf(listed, config, settings);
    if (listed.exposedVia.includes('http'))
      paths[invokeUrl('', listed.id)] = {
        post: {
          ...common,
          operationId: listed.id,
          requestBody: jsonBody(listed.inputSchema, schemaUrl(listed.id, settings)),
        },
      };
    const inPlace = listed.address === undefined ? undefined : inPlaceOf(listed, config, settings, named);
    if (inPlace === undefined) continue;
    const { path, parameters, requestBody } = inPlace;
    paths[path] = {
      ...paths[path],
      [listed.method.toLowerCase()]: {
        ...common,
        operationId: listed.exposedVia.includes('http') ? `${listed.id}.origin` : listed.id,
        ...(parameters.length === 0 ? {} : { parameters }),
        ...(requestBody === undefined ? {} : { requestBody }),
      },
    };
  }
  return paths;
}

/** What the operations of a resource have alike. */
function operationOf(listed: ListedResource, { mimeType }: ResourceConfig, settings: CatalogueSettings): JsonObject {
  const { id, name, outputSchema, pricing } = listed;
  const schema =
    outputSchema === undefined ? {} : { schema: embedded(outputSchema, `${schemaUrl(id, settings)}/output`) };
  const refused = { description: 'The input does not fit; the body says what would' };
  return {
    summary: name,
    description: describedWithPrice(listed),
    security: [],
    ...(pricing.type === 'free' ? {} : { 'x-payment-info': paymentInfo(pricing, settings) }),
    responses: {
      '200': { description: 'The answer', content: { [mimeType]: schema } },
      '400': refused,
      ...(pricing.type === 'free'
        ? {}
        : { '402': { description: 'Payment required: the header PAYMENT-REQUIRED has the offer' } }),
    },
  };
}

/** Catalogues read a price with the code of a currency, which a token has none of. */
function paymentInfo(
  { amount, currency }: { readonly amount: string; readonly currency: string },
  { x402 }: CatalogueSettings,
): JsonObject {
  const isUsdc = x402 !== undefined && KNOWN_NETWORKS.get(x402.network)?.usdc?.address === x402.asset;
  return { price: { mode: 'fixed', currency: isUsdc ? 'USD' : currency, amount }, protocols: [{ x402: {} }] };
}

interface InPlace {
  readonly path: string;
  readonly parameters: readonly JsonObject[];
  readonly requestBody: JsonObject | undefined;
}

/** The operation at the backend's own address; undefined for a template that has none. */
function inPlaceOf(
  { id, address = '', inputSchema }: ListedResource,
  { backend }: ResourceConfig,
  settings: CatalogueSettings,
  named: Map<string, string>,
): InPlace | undefined {
  const reading = readTemplate(backend.path);
  if (!reading.ok) return undefined;
  const { template } = reading;
  const own = address.slice(settings.merchant.publicBaseUrl.length);
  const path = named.get(pathShape(own)) ?? own;
  named.set(pathShape(own), path);
  const properties = isObject(inputSchema['properties']) ? inputSchema['properties'] : {};
  const names = templateParameters(path);
  const inPath = template.parameters.map((name, place) =>
    parameter(names[place] ?? name, 'path', schemaOf(properties, name), true),
  );
  const queried = queryProperties(backend, template, Object.keys(properties));
  const required = Array.isArray(inputSchema['required']) ? inputSchema['required'] : [];
  return {
    path,
    parameters: [
      ...inPath,
      ...[...new URLSearchParams(template.query)].map(([name, value]) =>
        parameter(name, 'query', { const: value }, true),
      ),
      ...queried.map((name) => parameter(name, 'query', schemaOf(properties, name), required.includes(name))),
    ],
    requestBody: carriesBody(backend.method)
      ? jsonBody(withoutMembers(inputSchema, bodyless(template, queried)), `${schemaUrl(id, settings)}/body`)
      : undefined,
  };
}

function bodyless({ parameters }: PathTemplate, queried: readonly string[]): ReadonlySet<string> {
  return new Set([...parameters, ...queried]);
}

function schemaOf(properties: JsonObject, name: string): Json {
  return properties[name] ?? {};
}

function parameter(name: string, where: 'path' | 'query', schema: Json, required: boolean): JsonObject {
  return { name, in: where, required, schema };
}

/** An input schema without what path and query hold. */
function withoutMembers(schema: JsonObject, gone: ReadonlySet<string>): JsonObject {
  if (gone.size === 0) return schema;
  const { properties, required, ...rest } = schema;
  const kept = isObject(properties)
    ? { properties: Object.fromEntries(Object.entries(properties).filter(([name]) => !gone.has(name))) }
    : {};
  const still = Array.isArray(required) ? required.filter((name) => typeof name !== 'string' || !gone.has(name)) : [];
  return { ...rest, ...kept, ...(still.length === 0 ? {} : { required: still }) };
}

function jsonBody(schema: JsonObject, url: string): JsonObject {
  const required = Array.isArray(schema['required']) && schema['required'].length > 0;
  return { required, content: { 'application/json': { schema: embedded(schema, url) } } };
}

/** A schema whose references begin at its own root, not at the document's, gets a name. */
function embedded(schema: JsonObject, url: string): JsonObject {
  return '$id' in schema || !JSON.stringify(schema).includes('"$ref":"#') ? schema : { $id: url, ...schema };
}

function schemaUrl(id: string, { merchant }: CatalogueSettings): string {
  return `${merchant.publicBaseUrl}/api/resources/${id}`;
}
