/**
 * The documents by which catalogues, models and people find the resources, made once at start:
 * `/openapi.json`, `/llms.txt`, `/.well-known/x402` and the index at `/`.
 */

import release from '../../package.json' with { type: 'json' };
import { isObject, type Json, type JsonObject } from '../json/json.ts';
import type { Pricing } from '../payments/pricing/amount.ts';
import { highestOf } from '../payments/pricing/by-input.ts';
import { KNOWN_NETWORKS } from '../payments/pricing/networks.ts';
import { invokeUrl } from '../payments/x402/wire/challenge.ts';
import { carriesBody, queryProperties } from './backend-request.ts';
import { describedWithPrice, type ListedResource } from './listing.ts';
import type { CatalogueSettings, ResourceConfig } from './settings.ts';
import { type StaticDocument, staticDocument, staticText } from './static-document.ts';
import { pathShape, readTemplate, templateParameters } from './url-template.ts';

/** Paths of the documents, by their names in `publish` of the configuration. */
export const PUBLISHED = {
  index: '/',
  openapi: '/openapi.json',
  llms: '/llms.txt',
  x402: '/.well-known/x402',
} as const;

export type PublishedName = keyof typeof PUBLISHED;

export const PUBLISHED_NAMES = Object.keys(PUBLISHED) as readonly PublishedName[];

/** The path at which A2A clients look for the agent card. */
export const CARD_PATH = '/.well-known/agent-card.json';

/**
 * Most resources in a document, the first of the configuration: one turn of the event loop makes
 * it, and catalogues read no further.
 */
export const MOST_DESCRIBED = 1_000;

const HOW_TO_CALL =
  'POST the input as JSON to an invoke path, or call an address as it is described. A 402 has the price; ' +
  'an x402 client signs it and asks again. A call without any input is answered with the price.';

/** A resource as it is listed, with its configuration, which says where its input goes. */
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
function isSoldOverHttp({ exposedVia }: Pick<ListedResource, 'exposedVia'>): boolean {
  return exposedVia.includes('http') || exposedVia.includes('origin');
}

function pathsOf(all: readonly Described[], settings: CatalogueSettings): Paths {
  const paths: Paths = Object.create(null);
  /** Paths of sales in place by shape: OpenAPI has one name for each parameter of a path. */
  const named = new Map<string, string>();
  for (const { listed, config } of all) {
    const common = operationOf(listed, config, settings);
    if (listed.exposedVia.includes('http'))
      paths[invokeUrl('', listed.id)] = {
        post: {
          ...common,
          operationId: listed.id,
          requestBody: jsonBody(listed.inputSchema, schemaUrl(listed.id, settings), config.bazaar?.example),
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

/** The members that the operations of a resource share. */
function operationOf(listed: ListedResource, resource: ResourceConfig, settings: CatalogueSettings): JsonObject {
  const { id, name, outputSchema, tags = [] } = listed;
  const { mimeType, pricing } = resource;
  const schema =
    outputSchema === undefined ? {} : { schema: embedded(outputSchema, `${schemaUrl(id, settings)}/output`) };
  const refused = { description: 'The input does not fit; the body says what would' };
  return {
    summary: name,
    description: describedWithPrice(listed),
    ...(tags.length === 0 ? {} : { tags }),
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

/** Catalogues read prices in a currency; a token has no currency code, so USDC is shown as USD. */
function paymentInfo(
  { amount, currency, entry = 0, by }: Extract<Pricing, { type: 'fixed' }>,
  { x402: first, alternatives }: CatalogueSettings,
): JsonObject {
  const x402 = entry === 0 ? first : alternatives[entry - 1];
  const isUsdc = x402 !== undefined && KNOWN_NETWORKS.get(x402.network)?.usdc?.address === x402.asset;
  const code = isUsdc ? 'USD' : currency;
  const price =
    by === undefined
      ? { mode: 'fixed', currency: code, amount }
      : { mode: 'dynamic', currency: code, min: amount, max: highestOf(by) };
  return { price, protocols: [{ x402: {} }] };
}

interface InPlace {
  readonly path: string;
  readonly parameters: readonly JsonObject[];
  readonly requestBody: JsonObject | undefined;
}

/** The operation at the backend's own address; undefined for a template that has none. */
function inPlaceOf(
  { id, address = '', inputSchema }: ListedResource,
  { backend, bazaar }: ResourceConfig,
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
  /** Values that a caller tries first: checks of listings fill paths and bodies with them. */
  const example = bazaar?.example ?? {};
  const inPath = template.parameters.map((name, place) =>
    parameter(names[place] ?? name, 'path', schemaOf(properties, name), true, example[name]),
  );
  const queried = queryProperties(backend, template, Object.keys(properties));
  const required = Array.isArray(inputSchema['required']) ? inputSchema['required'] : [];
  const beside = new Set([...template.parameters, ...queried]);
  return {
    path,
    parameters: [
      ...inPath,
      ...[...new URLSearchParams(template.query)].map(([name, value]) =>
        parameter(name, 'query', { const: value }, true),
      ),
      ...queried.map((name) =>
        parameter(name, 'query', schemaOf(properties, name), required.includes(name), example[name]),
      ),
    ],
    requestBody: carriesBody(backend.method)
      ? jsonBody(
          schemaOfBody(inputSchema, beside),
          `${schemaUrl(id, settings)}/body`,
          bazaar && without(beside, bazaar.example),
        )
      : undefined,
  };
}

function schemaOf(properties: JsonObject, name: string): Json {
  return properties[name] ?? {};
}

function parameter(name: string, where: 'path' | 'query', schema: Json, required: boolean, example?: Json): JsonObject {
  return { name, in: where, required, schema, ...(example === undefined ? {} : { example }) };
}

/** An input schema without the members that path and query hold. */
function schemaOfBody(schema: JsonObject, beside: ReadonlySet<string>): JsonObject {
  if (beside.size === 0) return schema;
  const { properties, required, ...rest } = schema;
  const kept = isObject(properties) ? { properties: without(beside, properties) } : {};
  const still = Array.isArray(required) ? required.filter((name) => typeof name !== 'string' || !beside.has(name)) : [];
  return { ...rest, ...kept, ...(still.length === 0 ? {} : { required: still }) };
}

function without(names: ReadonlySet<string>, members: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([name]) => !names.has(name)));
}

function jsonBody(schema: JsonObject, url: string, example: JsonObject | undefined): JsonObject {
  const required = Array.isArray(schema['required']) && schema['required'].length > 0;
  const content = { schema: embedded(schema, url), ...(example === undefined ? {} : { example }) };
  return { required, content: { 'application/json': content } };
}

/** A schema whose references begin at its own root, not at the document's, gets a name. */
function embedded(schema: JsonObject, url: string): JsonObject {
  return '$id' in schema || !JSON.stringify(schema).includes('"$ref":"#') ? schema : { $id: url, ...schema };
}

function schemaUrl(id: string, { merchant }: CatalogueSettings): string {
  return `${merchant.publicBaseUrl}/api/resources/${id}`;
}

/** Facts that an agent has to know before it calls. */
const CALLING = [
  'Call a resource with POST and its input as a JSON object. Inputs are described in the list of resources.',
  'A priced resource answers 402 with an x402 version 2 offer, in the body and in the header PAYMENT-REQUIRED.',
  'Sign it and send the same call again with the header PAYMENT-SIGNATURE. Each payment buys one call.',
];

/** A line of the documents: an address, a name, and a description with the price. */
interface Entry {
  readonly url: string;
  readonly name: string;
  readonly text: string;
}

/** The content from which the documents are made. */
export interface Introduction {
  /** The name of the merchant. */
  readonly name: string;
  readonly entries: readonly Entry[];
  readonly links: readonly { readonly url: string; readonly title: string }[];
  /** Resources that are not among the entries. */
  readonly more: number;
}

/** `listed`: in the order of the configuration. */
export function introductionOf(settings: CatalogueSettings, listed: readonly ListedResource[]): Introduction {
  const sold = listed.filter(isSoldOverHttp);
  const entries = sold.slice(0, MOST_DESCRIBED).map((resource) => entryOf(resource, settings));
  return { name: settings.merchant.name, entries, links: linksOf(settings), more: sold.length - entries.length };
}

/** `/.well-known/x402`: URLs that clients can ask as they stand, so no templates. */
export function x402Document({ entries }: Introduction): StaticDocument {
  return staticDocument({ version: 1, resources: entries.map(({ url }) => url).filter((url) => !url.includes('{')) });
}

/** `/` for a program: the addresses of the other documents and of the protocols. */
export function indexDocument(settings: CatalogueSettings): StaticDocument {
  const { name, publicBaseUrl } = settings.merchant;
  return staticDocument({
    name,
    resources: `${publicBaseUrl}/api/resources`,
    discovery: `${publicBaseUrl}/.well-known/agent-commerce`,
    ...Object.fromEntries([...mounted(settings), ...documents(settings)]),
  });
}

/** The entry has the invoke URL, or the address of a resource that is sold in place only. */
function entryOf(resource: ListedResource, { merchant }: CatalogueSettings): Entry {
  const invoke = invokeUrl(merchant.publicBaseUrl, resource.id);
  const url = resource.exposedVia.includes('http') ? invoke : (resource.address ?? invoke);
  return { url, name: resource.name, text: describedWithPrice(resource) };
}

function linksOf(settings: CatalogueSettings): Introduction['links'] {
  const { publicBaseUrl } = settings.merchant;
  return [
    { url: `${publicBaseUrl}/api/resources`, title: 'All resources with their input schemas' },
    { url: `${publicBaseUrl}/.well-known/agent-commerce`, title: 'Protocols, networks and capabilities' },
    ...mounted(settings).map(([name, url]) => ({ url, title: `The same over ${name.toUpperCase()}` })),
    ...documents(settings)
      .filter(([name]) => name === 'openapi')
      .map(([, url]) => ({ url, title: 'OpenAPI 3.1' })),
  ];
}

function mounted({ merchant, protocols }: CatalogueSettings): readonly (readonly [string, string])[] {
  return (['mcp', 'a2a'] as const)
    .filter((name) => protocols[name].enabled)
    .map((name) => [name, `${merchant.publicBaseUrl}${protocols[name].mountPath}`]);
}

function documents({ merchant, publish }: CatalogueSettings): readonly (readonly [string, string])[] {
  return PUBLISHED_NAMES.filter((name) => name !== 'index' && publish.has(name)).map((name) => [
    name,
    `${merchant.publicBaseUrl}${PUBLISHED[name]}`,
  ]);
}

/** `/llms.txt`, as https://llmstxt.org has it: a title, a summary, text, and lists of links. */
export function llmsDocument({ name, entries, links, more }: Introduction): StaticDocument {
  const lines = [
    `# ${oneLine(name)}`,
    '',
    `> ${entries.length + more} operations that programs call over HTTP, free or paid for each call with x402.`,
    '',
    ...CALLING,
    '',
    '## Resources',
    '',
    ...entries.map((entry) => `- [${oneLine(entry.name)}](${entry.url}): ${oneLine(entry.text)}`),
    ...(more > 0 ? [`- ${more} more in the list of all resources`] : []),
    '',
    '## Links',
    '',
    ...links.map(({ url, title }) => `- [${title}](${url})`),
    '',
  ];
  return staticText(lines.join('\n'));
}

/** Texts of the configuration may have line ends, and brackets that would end a link. */
function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(/[[\]]/g, '\\$&').trim();
}
