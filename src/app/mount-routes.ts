/**
 * Mounts what agents and the public reach: HTTP, MCP, A2A and the sale in place before the purchase
 * middleware, ACP alone; the list of resources, the discovery document, public keys, and the
 * documents of `publish`.
 */

import { type RequestHandler, Router } from 'express';
import release from '../../package.json' with { type: 'json' };
import type * as A2aModule from '../adapters/a2a/adapter.ts';
import type * as A2aCard from '../adapters/a2a/agent-card.ts';
import { asksForPrice, httpAdapter } from '../adapters/http/adapter.ts';
import { type PaymentPages, paymentPages } from '../adapters/http/payment-page.ts';
import type * as McpModule from '../adapters/mcp/adapter.ts';
import { IGNORABLE_CONDITIONS, originAdapter, STRICT_CONDITIONS } from '../adapters/origin/adapter.ts';
import { DISCOVERY_PATH } from '../checkouts/operations.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import { DID_PATH, didDocument, didWebOf, KEY_SET_PATH, keySet, signingKey } from '../crypto/signing-key.ts';
import { GatewayError } from '../errors.ts';
import type { Channel } from '../events/event.ts';
import { checkoutKeysOf } from '../mandates/ap2/checkout.ts';
import { inPlaceOf, onlyInPlace } from '../passthrough/route.ts';
import type { Offers } from '../payments/x402/wire/offers.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import type { AdapterHealths } from '../resources/discovery.ts';
import {
  type Introduction,
  indexDocument,
  introductionOf,
  llmsDocument,
  openApiDocument,
  PUBLISHED,
  type PublishedName,
  x402Document,
} from '../resources/published.ts';
import type { CatalogueSettings } from '../resources/settings.ts';
import { type StaticDocument, staticDocument as staticBytes, staticText } from '../resources/static-document.ts';
import { mirroredParameters } from '../resources/tool-form.ts';
import { note } from '../server/http/access-record.ts';
import type { PreflightInPlace } from '../server/http/origin.ts';
import { allowOnly, INVOKE_PATH } from '../server/http/request.ts';
import {
  acceptsPage,
  escapedHtml,
  PAGE_CLOSING,
  PAGE_HEADERS,
  pageOpening,
  published,
  staticDocument,
} from '../server/http/respond.ts';
import type { AnswerBudget } from '../server/limits/load-shedding.ts';
import { headRoom } from './head-room.ts';
import type { IngressGuards } from './ingress-guards.ts';
import type { AcpService } from './open-acp.ts';

/** The parts of the adapters. */
interface AdapterParts {
  readonly config: Pick<GatewayConfig, 'protocols' | 'merchant' | 'publish' | 'backend' | 'server' | 'limits'>;
  readonly catalogue: Catalogue;
  readonly offers: Offers;
  /** The memory for answers that go into a message as a whole. */
  readonly budget: AnswerBudget;
  /** Every call passes `entrance` first. */
  readonly ingressGuards: Pick<IngressGuards, 'entrance'>;
  /** Undefined: no checkouts are served. */
  readonly checkouts: AcpService | undefined;
  readonly loadedAdapters: LoadedAdapters;
}

/** The adapters that a process has loaded; undefined: the configuration does not enable it. */
interface LoadedAdapters {
  readonly mcp: typeof McpModule | undefined;
  readonly a2a: (typeof A2aModule & typeof A2aCard) | undefined;
}

/** Loads the enabled adapters; a reload enables no others. */
export async function loadAdapters({ mcp, a2a }: GatewayConfig['protocols']): Promise<LoadedAdapters> {
  return {
    mcp: mcp.enabled ? await import('../adapters/mcp/adapter.ts') : undefined,
    a2a: a2a.enabled
      ? { ...(await import('../adapters/a2a/adapter.ts')), ...(await import('../adapters/a2a/agent-card.ts')) }
      : undefined,
  };
}

/** How long agents may keep the discovery of checkouts, seconds (specification 8). */
const DISCOVERY_MAX_AGE_S = 3_600;
const ENTRY_PATH = /^\/api\/resources\/(?<id>[^/]+)$/;

/** Mounts every enabled adapter; one that is not enabled has no path at all. */
export function mountAdapters(agents: Router, parts: AdapterParts, purchase: readonly RequestHandler[]): void {
  const { config, catalogue, budget, ingressGuards, checkouts, loadedAdapters } = parts;
  const { protocols, merchant } = config;
  const { mcp, a2a } = protocols;
  const { version } = release;
  const mount = (
    channel: Channel,
    paths: (string | RegExp)[],
    adapter: RequestHandler,
    priced?: RequestHandler,
  ): void => {
    const call = [...ofChannel(channel, [...ingressGuards.entrance, adapter]), ...purchase];
    agents.post(paths, call);
    if (priced !== undefined) agents.get(paths, [priced, ...call]);
    agents.all(paths, allowOnly('POST'));
  };
  if (protocols.http.enabled) {
    const isSold = (id: string): boolean => {
      const resource = catalogue.byId.get(id);
      return resource?.pricing.type === 'fixed' && resource.exposedVia.includes('http');
    };
    mount('http', [INVOKE_PATH], httpAdapter(headRoom(config), pagesOf(parts)), asksForPrice(isSold));
  }
  if (loadedAdapters.mcp !== undefined)
    mount('mcp', withSlash(mcp.mountPath), loadedAdapters.mcp.mcpAdapter({ catalogue, merchant, version, budget }));
  if (loadedAdapters.a2a !== undefined) {
    const { a2aAdapter, a2aDocuments } = loadedAdapters.a2a;
    const adapter = a2aAdapter(a2a.errorProfile, budget);
    mount('a2a', withSlash(a2a.mountPath), adapter);
    // Behind the mount: a router in which nothing matches would hold every call back for a turn of
    // the event loop.
    agents.use(a2aDocuments({ settings: a2a, catalogue, merchant, version, startedAt: new Date() }));
  }
  // Checkouts pass no purchase middleware: ACP has neither offers nor proofs.
  if (checkouts !== undefined) {
    agents.use(checkouts.adapter, checkouts.failures);
    agents.get(DISCOVERY_PATH, published(checkouts.discovery, new Date(), DISCOVERY_MAX_AGE_S));
    agents.all(DISCOVERY_PATH, allowOnly('GET', 'HEAD'));
  }
}

/** Notes the channel before the handlers of an adapter, so that refused requests have it too. */
function ofChannel(channel: Channel, handlers: readonly RequestHandler[]): readonly RequestHandler[] {
  const [first, ...others] = handlers;
  if (first === undefined) return [];
  return [
    function noteChannelFirst(req, res, next) {
      note(res, 'channel', channel);
      return first(req, res, next);
    },
    ...others,
  ];
}

/** Clients call a mount path with or without a slash at its end. */
function withSlash(path: string): string[] {
  return [path, `${path}/`];
}

/** Sells at the backend's own addresses, which `takeRoute` has told from all other paths. */
export function saleInPlace(parts: AdapterParts, purchase: readonly RequestHandler[]): RequestHandler {
  const { config, catalogue, ingressGuards } = parts;
  const { originHeaders } = config.backend;
  const adapter = originAdapter({
    ...{ catalogue, originHeaders, publicBaseUrl: config.merchant.publicBaseUrl },
    ...{ pages: pagesOf(parts), room: headRoom(config) },
  });
  const sale = Router();
  sale.use([...ofChannel('origin', [...ingressGuards.entrance, adapter]), ...purchase]);
  return onlyInPlace(sale);
}

function pagesOf({ config, catalogue, offers }: AdapterParts): PaymentPages {
  const lists = ['/api/resources', ...(config.publish.has('llms') ? [PUBLISHED.llms] : [])];
  const { publicBaseUrl } = config.merchant;
  return paymentPages({ resources: catalogue.byId, offers, lists: lists.map((path) => publicBaseUrl + path) });
}

/** Methods and headers for pages of allowed origins. Browsers send no Cookie that a page names. */
export function preflightInPlace({ originHeaders }: GatewayConfig['backend']): PreflightInPlace {
  const named = originHeaders.filter((name) => name !== 'cookie');
  return {
    methodsOf: (res) => inPlaceOf(res)?.allow,
    headers: [...named, ...STRICT_CONDITIONS, ...IGNORABLE_CONDITIONS],
  };
}

/** Mounts the public documents, for GET and HEAD alone. An entry is made at its first request. */
export function mountPublicRoutes(
  agents: Router,
  config: SigningSettings & CatalogueSettings,
  catalogue: Catalogue,
  health: () => AdapterHealths,
): void {
  agents.get(
    '/api/resources',
    staticDocument(() => catalogue.listing),
  );
  agents.get(ENTRY_PATH, function listedEntry(req, res, next) {
    const entry = catalogue.entry(String(req.params['id']));
    if (entry === undefined) throw new GatewayError('RESOURCE_NOT_FOUND');
    staticDocument(() => entry)(req, res, next);
  });
  agents.get(
    '/.well-known/agent-commerce',
    staticDocument(() => catalogue.discovery(health())),
  );
  const documents = publishedDocuments(config, catalogue);
  for (const [path, handler] of documents) agents.get(path, handler);
  const paths = ['/api/resources', ENTRY_PATH, '/.well-known/agent-commerce', ...documents.keys()];
  for (const [path, document] of keyDocuments(config)) {
    agents.get(path, published(staticBytes(document), new Date()));
    paths.push(path);
  }
  agents.all(paths, allowOnly('GET', 'HEAD'));
}

/** The documents that `publish` lists, by their paths. */
function publishedDocuments(
  config: CatalogueSettings,
  { listed }: Pick<Catalogue, 'listed'>,
): ReadonlyMap<string, RequestHandler> {
  const { publish } = config;
  const introduction = introductionOf(config, listed);
  const plain = 'text/plain; charset=utf-8';
  const made: Readonly<Record<PublishedName, () => RequestHandler>> = {
    index: () => indexRoute(indexDocument(config), staticText(indexPage(introduction))),
    openapi: () => fixed(openApiDocument(config, listed)),
    llms: () => fixed(llmsDocument(introduction), plain),
    x402: () => fixed(x402Document(introduction)),
  };
  return new Map([...publish].map((name) => [PUBLISHED[name], made[name]()]));
}

function fixed(document: StaticDocument, mediaType?: string): RequestHandler {
  return staticDocument(() => document, mediaType);
}

/** A page for browsers, and JSON for programs. */
function indexRoute(document: StaticDocument, page: StaticDocument): RequestHandler {
  const [toProgram, toPerson] = [fixed(document), fixed(page, PAGE_HEADERS['content-type'])];
  return function index(req, res, next) {
    res.vary('Accept');
    if (!acceptsPage(req.headers)) {
      toProgram(req, res, next);
      return;
    }
    for (const [name, value] of Object.entries(PAGE_HEADERS)) res.setHeader(name, value);
    toPerson(req, res, next);
  };
}

/** The settings of the keys that the gateway signs with. */
type SigningSettings = Pick<GatewayConfig, 'merchant' | 'protocols' | 'authorization' | 'signing'>;

/**
 * The documents with public keys, by their paths: the set of all keys, each under its own id, and
 * the DID document with the keys of receipts that buyers keep.
 */
export function keyDocuments(config: SigningSettings): ReadonlyMap<string, object> {
  const { a2a } = config.protocols;
  const { ap2 } = config.authorization;
  const card = a2a.enabled && a2a.signingKey !== undefined ? [signingKey(a2a.signingKey).publicJwk] : [];
  const checkouts = ap2 === undefined ? [] : checkoutKeysOf(ap2.checkout).trusted;
  const { signing } = config;
  const kept = signing === undefined ? [] : [signingKey(signing.key).publicJwk, ...signing.alsoPublish];
  const keys = [...card, ...checkouts, ...kept];
  const did = didWebOf(config.merchant.publicBaseUrl);
  return new Map<string, object>([
    ...(keys.length === 0 ? [] : [[KEY_SET_PATH, keySet(keys)] as const]),
    ...(kept.length === 0 ? [] : [[DID_PATH, didDocument(did, kept)] as const]),
  ]);
}

/** The headers that MCP clients make of arguments; pages of allowed origins may send them. */
export function mirroredHeaders({ listed }: Catalogue): readonly string[] {
  const headers = listed.flatMap(({ inputSchema }) => mirroredParameters(inputSchema).map(({ header }) => header));
  return [...new Set(headers)];
}

/** Makes the page of `/` for browsers. */
export function indexPage({ name, entries, links, more }: Introduction): string {
  const sold = entries.map(
    (entry) =>
      `<dt>${escapedHtml(entry.name)}</dt><dd>${escapedHtml(entry.text)}<br><code>${escapedHtml(entry.url)}</code></dd>`,
  );
  return [
    `${pageOpening(name)}<h1>${escapedHtml(name)}</h1>`,
    '<p>Programs call these operations over HTTP; priced ones are paid for each call with x402.</p>',
    `<dl>${sold.join('')}</dl>`,
    more > 0 ? `<p>And ${more} more.</p>` : '',
    `<ul>${links.map(({ url, title }) => `<li><a href="${escapedHtml(url)}">${title}</a></li>`).join('')}</ul>`,
    PAGE_CLOSING,
  ].join('');
}
