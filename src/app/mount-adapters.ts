/**
 * Mounts the enabled adapters: HTTP, MCP, A2A and the sale in place before the purchase middleware,
 * ACP alone.
 */

import { type RequestHandler, Router } from 'express';
import release from '../../package.json' with { type: 'json' };
import type * as A2aModule from '../adapters/a2a/adapter.ts';
import type * as A2aCard from '../adapters/a2a/agent-card.ts';
import { httpAdapter } from '../adapters/http/adapter.ts';
import type * as McpModule from '../adapters/mcp/adapter.ts';
import { IGNORABLE_CONDITIONS, originAdapter, STRICT_CONDITIONS } from '../adapters/origin/adapter.ts';
import { DISCOVERY_PATH } from '../checkouts/operations.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import type { Channel } from '../events/event.ts';
import { inPlaceOf, onlyInPlace } from '../passthrough/route.ts';
import type { Offers } from '../payments/x402/wire/offers.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import { ofChannel } from '../server/http/access-record.ts';
import type { PreflightInPlace } from '../server/http/origin.ts';
import { published } from '../server/http/respond.ts';
import { allowOnly } from '../server/http/target.ts';
import type { AnswerBudget } from '../server/limits/answer-budget.ts';
import { headRoom } from './head-room.ts';
import type { IngressGuards } from './ingress-guards.ts';
import type { AcpService } from './open-acp.ts';

/** What the adapters are made from. */
interface AdapterParts {
  readonly config: Pick<GatewayConfig, 'protocols' | 'merchant' | 'backend' | 'server' | 'limits'>;
  readonly catalogue: Catalogue;
  readonly offers: Offers;
  /** The memory for answers that go into a message as a whole. */
  readonly budget: AnswerBudget;
  /** Every call passes its entrance first. */
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

/** Loads what is enabled. Another configuration of the same process enables nothing else. */
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
const INVOKE_PATH = '/api/resources/:id/invoke';

/** Mounts every enabled adapter; one that is not enabled has no path at all. */
export function mountAdapters(agents: Router, parts: AdapterParts, purchase: readonly RequestHandler[]): void {
  const { config, catalogue, budget, ingressGuards, checkouts, loadedAdapters } = parts;
  const { protocols, merchant } = config;
  const { mcp, a2a } = protocols;
  const { version } = release;
  const mount = (channel: Channel, paths: string[], adapter: RequestHandler): void => {
    agents.post(paths, [...ofChannel(channel, [...ingressGuards.entrance, adapter]), ...purchase]);
    agents.all(paths, allowOnly('POST'));
  };
  if (protocols.http.enabled) mount('http', [INVOKE_PATH], httpAdapter(headRoom(config).plain));
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
  // No purchase middleware: neither offers nor proofs have a meaning there.
  if (checkouts !== undefined) {
    agents.use(checkouts.adapter, checkouts.failures);
    agents.get(DISCOVERY_PATH, published(checkouts.discovery, new Date(), DISCOVERY_MAX_AGE_S));
    agents.all(DISCOVERY_PATH, allowOnly('GET', 'HEAD'));
  }
}

/** Clients join the mount and an empty path in either way. */
function withSlash(path: string): string[] {
  return [path, `${path}/`];
}

/** Sells at the backend's own addresses, which `takeRoute` has told from all other paths. */
export function mountSaleInPlace(agents: Router, parts: AdapterParts, purchase: readonly RequestHandler[]): void {
  const { config, catalogue, offers, ingressGuards } = parts;
  const { originHeaders } = config.backend;
  const adapter = originAdapter({
    ...{ catalogue, offers, originHeaders, publicBaseUrl: config.merchant.publicBaseUrl },
    room: headRoom(config).plain,
  });
  const sale = Router();
  sale.use([...ofChannel('origin', [...ingressGuards.entrance, adapter]), ...purchase]);
  agents.use(onlyInPlace(sale));
}

/** What pages of allowed origins may ask there. A browser sends no Cookie that a page names. */
export function preflightInPlace({ originHeaders }: GatewayConfig['backend']): PreflightInPlace {
  const named = originHeaders.filter((name) => name !== 'cookie');
  return {
    methodsOf: (res) => inPlaceOf(res)?.allow,
    headers: [...named, ...STRICT_CONDITIONS, ...IGNORABLE_CONDITIONS],
  };
}
