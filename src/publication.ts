import type { Express } from 'express';
import type { Catalogue } from './catalogue/catalogue.ts';
import type { AdapterHealths } from './catalogue/discovery.ts';
import { mirroredParameters } from './catalogue/mirrored.ts';
import { allowOnly } from './http/methods.ts';
import { staticDocument } from './http/respond.ts';

/** What anyone may read: bytes made at start. */
export function publish(agents: Express, catalogue: Catalogue, health: () => AdapterHealths): void {
  agents.get(
    '/api/resources',
    staticDocument(() => catalogue.listing),
  );
  agents.get(
    '/.well-known/agent-commerce',
    staticDocument(() => catalogue.discovery(health())),
  );
  agents.all(['/api/resources', '/.well-known/agent-commerce'], allowOnly('GET', 'HEAD'));
}

/** The headers that MCP clients make of arguments: pages of allowed origins may send them. */
export function mirroredHeaders({ listed }: Catalogue): readonly string[] {
  const headers = listed.flatMap(({ inputSchema }) => mirroredParameters(inputSchema).map(({ header }) => header));
  return [...new Set(headers)];
}
