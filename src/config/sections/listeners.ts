/** `server`, `management`, `protocols`, `merchant`, `limits`: what is served, and where. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import type { ProblemList } from '../../problems/problem.ts';
import type { GatewayConfig } from '../document/config.ts';
import type { ConfigDocument } from '../document/document.ts';
import { deriveA2a } from './a2a.ts';
import { type AcpSurroundings, deriveAcp } from './acp.ts';

const LIMITS = schema.properties.limits.properties;
const SERVER = schema.properties.server.properties;
const MANAGEMENT = schema.properties.management.properties;
const PROTOCOLS = schema.properties.protocols.properties;

/** Paths of the gateway itself: no adapter may be mounted there. */
const OWN_PATHS: readonly string[] = [
  ...['/api', '/console'],
  ...['/health', '/ready', '/metrics', '/drain', '/release', '/app-probe'],
];

/** `merchant`: the public URL without trailing slash, because paths are appended to it. */
export function deriveMerchant({ merchant }: ConfigDocument): GatewayConfig['merchant'] {
  return { id: merchant.id, name: merchant.name, publicBaseUrl: merchant.publicBaseUrl.replace(/\/+$/, '') };
}

/** `server`: tokens in order of use, origins and hosts in lower case, as they are compared. */
export function deriveServer(document: ConfigDocument, problems: ProblemList): GatewayConfig['server'] {
  const server = document.server ?? {};
  const origins = (server.allowedOrigins ?? []).map((origin) => origin.toLowerCase());
  const { adminToken = '', adminTokenNext = '' } = server;
  return {
    host: server.host ?? SERVER.host.default,
    port: server.port ?? SERVER.port.default,
    adminTokens: [...new Set([adminToken, adminTokenNext])].filter((token) => token !== ''),
    rotation: rotationOf(adminToken, adminTokenNext),
    allowedOrigins: origins,
    allowedHosts: server.allowedHosts?.map((host) => host.toLowerCase()),
    trustProxy: server.trustProxy ?? SERVER.trustProxy.default,
    workers: deriveWorkers(document, problems),
  };
}

/** An embedded database belongs to one process. */
function deriveWorkers({ server, storage }: ConfigDocument, problems: ProblemList): GatewayConfig['server']['workers'] {
  const { workers = SERVER.workers.default } = server ?? {};
  if (!problems.sound('storage') || storage.sqlite === undefined) return workers;
  if (workers !== 'auto' && workers > 1)
    problems.add('server.workers', 'must be 1 with storage.sqlite; several processes need storage.redis');
  return 1;
}

function rotationOf(now: string, next: string): GatewayConfig['server']['rotation'] {
  if (next === '') return 'none';
  if (now === '') return 'next alone';
  return now === next ? 'same twice' : 'both';
}

/** `management`: another port than the agents', which the Service exposes. */
export function deriveManagement(document: ConfigDocument, problems: ProblemList): GatewayConfig['management'] {
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
): GatewayConfig['protocols'] {
  const { http, mcp } = document.protocols ?? {};
  const protocols = {
    http: { enabled: http?.enabled ?? PROTOCOLS.http.properties.enabled.default },
    mcp: { enabled: mcp?.enabled ?? false, mountPath: mcp?.mountPath ?? PROTOCOLS.mcp.properties.mountPath.default },
    a2a: deriveA2a(document, problems),
    acp: deriveAcp(document, checkout, problems),
  };
  checkMounts(document, protocols, problems);
  return protocols;
}

/** Each adapter has its paths to itself, and none of the gateway's own. */
function checkMounts(document: ConfigDocument, protocols: GatewayConfig['protocols'], problems: ProblemList): void {
  const taken = new Map<string, string>();
  for (const name of ['mcp', 'a2a', 'acp'] as const) {
    const { mountPath } = protocols[name];
    const enabled = document.protocols?.[name]?.enabled === true;
    const path = `protocols.${name}.mountPath`;
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
    rate: limits.rate && { perSecond, burst },
  };
}
