/** Mounts what everyone may read: the list of resources, the discovery document, public keys. */

import type { Router } from 'express';
import type { GatewayConfig } from '../config/document/config.ts';
import { KEY_SET_PATH, keySet, type PublicJwk, readSigningKey } from '../crypto/signing-key.ts';
import { checkoutKeysOf } from '../mandates/ap2/trust/settings.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import type { AdapterHealths } from '../resources/discovery.ts';
import { mirroredParameters } from '../resources/mirrored-headers.ts';
import { staticDocument as staticBytes } from '../resources/static-document.ts';
import { published, staticDocument } from '../server/http/respond.ts';
import { allowOnly } from '../server/http/target.ts';

/** Mounts the public documents. Their bytes are made at start. */
export function mountPublicRoutes(
  agents: Router,
  config: SigningSettings,
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
  const paths = ['/api/resources', '/.well-known/agent-commerce'];
  const keys = publicKeys(config);
  if (keys.length > 0) {
    agents.get(KEY_SET_PATH, published(staticBytes(keySet(keys)), new Date()));
    paths.push(KEY_SET_PATH);
  }
  agents.all(paths, allowOnly('GET', 'HEAD'));
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
