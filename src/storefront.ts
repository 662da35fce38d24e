import type { Express, RequestHandler } from 'express';
import release from '../package.json' with { type: 'json' };
import type { Catalogue } from './catalogue/catalogue.ts';
import type { GatewayConfig } from './config/config.ts';
import { a2aDocuments } from './fronts/a2a/documents.ts';
import { a2aFront } from './fronts/a2a/front.ts';
import { httpFront } from './fronts/http.ts';
import { mcpFront } from './fronts/mcp/mcp.ts';
import { allowOnly } from './http/methods.ts';
import type { ParkedCalls } from './payments/parked-calls.ts';

/** What the fronts are made from. */
export interface FrontParts {
  readonly config: Pick<GatewayConfig, 'protocols' | 'merchant' | 'x402'>;
  readonly catalogue: Catalogue;
  readonly parked: ParkedCalls;
}

/** Every enabled front before the layers of a purchase. A front that is not enabled has no path at all. */
export function openFronts(agents: Express, parts: FrontParts, purchase: readonly RequestHandler[]): void {
  const { config, catalogue, parked } = parts;
  const { protocols, merchant, x402 } = config;
  const { http, mcp, a2a } = protocols;
  const { version } = release;
  const mount = (paths: string[], front: RequestHandler): void => {
    agents.post(paths, front, [...purchase]);
    agents.all(paths, allowOnly('POST'));
  };
  if (http.enabled) mount(['/api/resources/:id/invoke'], httpFront());
  if (mcp.enabled) mount([mcp.mountPath], mcpFront({ catalogue, merchant, version }));
  if (a2a.enabled) {
    agents.use(a2aDocuments({ settings: a2a, catalogue, merchant, version, startedAt: new Date() }));
    // A call waits as long as its challenge is good for; where nothing has a price, nothing waits.
    const parkForMs = (x402?.maxTimeoutSeconds ?? 0) * 1_000;
    // Clients join the mount and an empty path in either way.
    mount([a2a.mountPath, `${a2a.mountPath}/`], a2aFront({ errorProfile: a2a.errorProfile, parked, parkForMs }));
  }
}
