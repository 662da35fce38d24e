/** `server`, `management`, `protocols`, `merchant`, `limits`: what is served, and where. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import type { Channel } from '../../events/event.ts';
import type { ProblemList } from '../../problems/problem.ts';
import type { GatewayConfig } from '../document/config.ts';
import type { ConfigDocument } from '../document/document.ts';
import { deriveA2a } from './a2a.ts';
import { type AcpSurroundings, deriveAcp } from './acp.ts';

const LIMITS = schema.properties.limits.properties;
const UNPAID_WORK = LIMITS.unpaidWork.properties;
const SERVER = schema.properties.server.properties;
const MANAGEMENT = schema.properties.management.properties;
const PROTOCOLS = schema.properties.protocols.properties;

/** Paths of the gateway itself: no adapter may be mounted there. */
const OWN_PATHS: readonly string[] = [
  ...['/api', '/console'],
  ...['/health', '/ready', '/metrics', '/drain', '/release', '/app-probe'],
];

/** `merchant`: the public URL without trailing slash, because paths are appended to it. */
export function deriveMerchant(
  { merchant }: ConfigDocument,
  problems: ProblemList,
): GatewayConfig['merchant'] | undefined {
  if (!problems.sound('merchant')) return undefined;
  const [publicBaseUrl, ...formerBaseUrls] = [merchant.publicBaseUrl, ...(merchant.formerBaseUrls ?? [])].map((url) =>
    url.replace(/\/+$/, ''),
  );
  return { id: merchant.id, name: merchant.name, publicBaseUrl: publicBaseUrl ?? '', formerBaseUrls };
}

/** `server`: tokens in order of use, origins and hosts in lower case, as they are compared. */
export function deriveServer(document: ConfigDocument, problems: ProblemList): GatewayConfig['server'] | undefined {
  if (!problems.sound('server')) return undefined;
  const server = document.server ?? {};
  const origins = (server.allowedOrigins ?? []).map((origin) => origin.toLowerCase());
  const { adminToken = '', adminTokenNext = '' } = server;
  const rotation = adminToken === '' ? 'next alone' : adminToken === adminTokenNext ? 'same twice' : undefined;
  return {
    host: server.host ?? SERVER.host.default,
    port: server.port ?? SERVER.port.default,
    adminTokens: [...new Set([adminToken, adminTokenNext])].filter((token) => token !== ''),
    rotation: adminTokenNext === '' ? undefined : rotation,
    allowedOrigins: origins,
    allowedHosts: server.allowedHosts?.map((host) => host.toLowerCase()),
    trustProxy: server.trustProxy ?? SERVER.trustProxy.default,
    maxHeadBytes: server.maxHeadBytes ?? SERVER.maxHeadBytes.default,
  };
}

/** `management`: another port than the agents', which the Service exposes. */
export function deriveManagement(
  document: ConfigDocument,
  problems: ProblemList,
): GatewayConfig['management'] | undefined {
  if (!problems.sound('management', 'server.port')) return undefined;
  const host = document.management?.host ?? MANAGEMENT.host.default;
  const port = document.management?.port ?? MANAGEMENT.port.default;
  if (port !== 0 && port === (document.server?.port ?? SERVER.port.default))
    problems.add('management.port', 'must differ from server.port');
  return { host, port };
}

/** `protocols`: http unless switched off, the others only when switched on. */
export function deriveProtocols(
  document: ConfigDocument,
  checkout: AcpSurroundings,
  problems: ProblemList,
): GatewayConfig['protocols'] | undefined {
  if (!problems.readable('protocols')) return undefined;
  const { http, mcp } = document.protocols ?? {};
  const a2a = deriveA2a(document, problems);
  const acp = deriveAcp(document, checkout, problems);
  checkMounts(document, problems);
  if (!problems.sound('protocols') || a2a === undefined || acp === undefined) return undefined;
  return {
    http: { enabled: http?.enabled ?? PROTOCOLS.http.properties.enabled.default },
    mcp: { enabled: mcp?.enabled ?? false, mountPath: mcp?.mountPath ?? PROTOCOLS.mcp.properties.mountPath.default },
    a2a,
    acp,
  };
}

/** Adapters that offer resources and are switched on; undefined where that cannot be told. */
export function enabledChannels(
  { protocols }: ConfigDocument,
  problems: ProblemList,
): ReadonlySet<Channel> | undefined {
  const names = ['http', 'mcp', 'a2a'] as const;
  if (!problems.sound(...names.map((name) => `protocols.${name}.enabled`))) return undefined;
  return new Set(names.filter((name) => protocols?.[name]?.enabled ?? PROTOCOLS[name].properties.enabled.default));
}

/** Each adapter has its paths to itself, and none of the gateway's own. */
function checkMounts({ protocols }: ConfigDocument, problems: ProblemList): void {
  const taken = new Map<string, string>();
  for (const name of ['mcp', 'a2a', 'acp'] as const) {
    const path = `protocols.${name}.mountPath`;
    if (!problems.sound(path, `protocols.${name}.enabled`)) continue;
    const { mountPath = PROTOCOLS[name].properties.mountPath.default, enabled = false } = protocols?.[name] ?? {};
    if (OWN_PATHS.some((own) => within(mountPath, own)))
      problems.add(path, `must not be one of the gateway's own paths: ${OWN_PATHS.join(', ')}`);
    const other = taken.get(mountPath);
    if (enabled && other !== undefined) problems.add(path, `must differ from protocols.${other}.mountPath`);
    // Everything below the checkout's mount answers in the format of ACP alone.
    for (const [mounted, adapter] of taken)
      if (enabled && name === 'acp' && (within(mountPath, mounted) || within(mounted, mountPath)))
        problems.add(path, `must not be above or below protocols.${adapter}.mountPath`);
    if (enabled) taken.set(mountPath, name);
  }
}

function within(path: string, parent: string): boolean {
  return path === parent || path.startsWith(`${parent}/`);
}

/** `limits`: without `rate` there is no rate limit. A burst defaults to two seconds' worth. */
export function deriveLimits({ limits = {} }: ConfigDocument): GatewayConfig['limits'] {
  const { perSecond = LIMITS.rate.properties.perSecond.default, burst = 2 * perSecond } = limits.rate ?? {};
  return {
    maxInFlight: limits.maxInFlight ?? LIMITS.maxInFlight.default,
    maxStreams: limits.maxStreams ?? LIMITS.maxStreams.default,
    maxPassthrough: limits.maxPassthrough ?? LIMITS.maxPassthrough.default,
    maxUpgrades: limits.maxUpgrades ?? LIMITS.maxUpgrades.default,
    maxBufferedBytes: limits.maxBufferedBytes ?? LIMITS.maxBufferedBytes.default,
    unpaidWork: {
      perResource: limits.unpaidWork?.perResource ?? UNPAID_WORK.perResource.default,
      perNetwork: limits.unpaidWork?.perNetwork ?? UNPAID_WORK.perNetwork.default,
      all: limits.unpaidWork?.all ?? UNPAID_WORK.all.default,
      windowMs: (limits.unpaidWork?.windowSeconds ?? UNPAID_WORK.windowSeconds.default) * 1_000,
    },
    rate: limits.rate && { perSecond, burst },
  };
}
