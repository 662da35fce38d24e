/**
 * Mounts what everyone may read: the list of resources, the discovery document, public keys, and
 * the documents of `publish`.
 */

import type { RequestHandler, Router } from 'express';
import type { GatewayConfig } from '../config/document/config.ts';
import { KEY_SET_PATH, keySet, type PublicJwk, readSigningKey } from '../crypto/signing-key.ts';
import { checkoutKeysOf } from '../mandates/ap2/trust/settings.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import type { AdapterHealths } from '../resources/discovery.ts';
import { indexDocument, introductionOf, llmsDocument, x402Document } from '../resources/introductions.ts';
import { mirroredParameters } from '../resources/mirrored-headers.ts';
import { openApiDocument } from '../resources/openapi.ts';
import { PUBLISHED, type PublishedName } from '../resources/published.ts';
import type { CatalogueSettings } from '../resources/settings.ts';
import { type StaticDocument, staticDocument as staticBytes, staticText } from '../resources/static-document.ts';
import { acceptsPage } from '../server/http/accepts-page.ts';
import { PAGE_HEADERS } from '../server/http/page.ts';
import { published, staticDocument } from '../server/http/respond.ts';
import { allowOnly } from '../server/http/target.ts';
import { indexPage } from './index-page.ts';

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
  const keys = publicKeys(config);
  if (keys.length > 0) {
    agents.get(KEY_SET_PATH, published(staticBytes(keySet(keys)), new Date()));
    paths.push(KEY_SET_PATH);
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
type SigningSettings = Pick<GatewayConfig, 'protocols' | 'authorization'>;

/** The keys of the agent card, of checkouts and of receipts, each under its own id. */
export function publicKeys({ protocols: { a2a }, authorization: { ap2 } }: SigningSettings): readonly PublicJwk[] {
  const card = a2a.enabled && a2a.signingKey !== undefined ? readSigningKey(a2a.signingKey) : undefined;
  const checkouts = ap2 === undefined ? [] : checkoutKeysOf(ap2.checkout).trusted;
  return card?.ok === true ? [card.key.publicJwk, ...checkouts] : checkouts;
}

/** The headers that MCP clients make of arguments; pages of allowed origins may send them. */
export function mirroredHeaders({ listed }: Catalogue): readonly string[] {
  const headers = listed.flatMap(({ inputSchema }) => mirroredParameters(inputSchema).map(({ header }) => header));
  return [...new Set(headers)];
}
