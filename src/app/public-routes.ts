/**
 * Mounts what everyone may read: the list of resources, the discovery document, public keys, and
 * the documents of `publish`.
 */

import type { RequestHandler, Router } from 'express';
import type { GatewayConfig } from '../config/document/config.ts';
import { DID_PATH, didDocument, didWebOf, KEY_SET_PATH, keySet, signingKey } from '../crypto/signing-key.ts';
import { checkoutKeysOf } from '../mandates/ap2/checkout.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import type { AdapterHealths } from '../resources/discovery.ts';
import {
  type Introduction,
  indexDocument,
  introductionOf,
  llmsDocument,
  x402Document,
} from '../resources/introductions.ts';
import { mirroredParameters } from '../resources/mirrored-headers.ts';
import { openApiDocument } from '../resources/openapi.ts';
import { PUBLISHED, type PublishedName } from '../resources/published.ts';
import type { CatalogueSettings } from '../resources/settings.ts';
import { type StaticDocument, staticDocument as staticBytes, staticText } from '../resources/static-document.ts';
import { acceptsPage } from '../server/http/accepts-page.ts';
import { escapedHtml, PAGE_CLOSING, PAGE_HEADERS, pageOpening } from '../server/http/page.ts';
import { published, staticDocument } from '../server/http/respond.ts';
import { allowOnly } from '../server/http/target.ts';

/** Mounts the public documents. Their bytes are made at start. */
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
  agents.get(
    '/.well-known/agent-commerce',
    staticDocument(() => catalogue.discovery(health())),
  );
  const documents = publishedDocuments(config, catalogue);
  for (const [path, handler] of documents) agents.get(path, handler);
  const paths = ['/api/resources', '/.well-known/agent-commerce', ...documents.keys()];
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
    if (!acceptsPage(req.headers.accept)) {
      toProgram(req, res, next);
      return;
    }
    for (const [name, value] of Object.entries(PAGE_HEADERS)) res.setHeader(name, value);
    toPerson(req, res, next);
  };
}

/** What the gateway signs with. */
type SigningSettings = Pick<GatewayConfig, 'merchant' | 'protocols' | 'authorization' | 'signing'>;

/**
 * The documents with public keys, by their paths: the set of all keys, each under its own id, and
 * those of what buyers keep as keys of the merchant's host.
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

/** Everything is written at start. */
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
