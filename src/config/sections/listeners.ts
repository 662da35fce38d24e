/** `server`, `management`, `protocols`, `merchant`, `limits`: what is served, and where. */

import { readSigningKey } from '../../crypto/signing-key.ts';
import type { Channel } from '../../events/event.ts';
import type { ProblemList } from '../../problems/problem.ts';
import type { GatewayConfig } from '../document/config.ts';
import type { ConfigDocument } from '../document/document.ts';
import { type AcpSurroundings, deriveAcp } from './acp.ts';

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
  const [publicBaseUrl, ...formerBaseUrls] = [merchant.publicBaseUrl, ...merchant.formerBaseUrls].map((url) =>
    url.replace(/\/+$/, ''),
  );
  return { id: merchant.id, name: merchant.name, publicBaseUrl: publicBaseUrl ?? '', formerBaseUrls };
}

/** `server`: tokens in order of use, origins and hosts in lower case, as they are compared. */
export function deriveServer({ server }: ConfigDocument, problems: ProblemList): GatewayConfig['server'] | undefined {
  if (!problems.sound('server')) return undefined;
  const { adminToken = '', adminTokenNext = '', ...others } = server;
  const rotation = adminToken === '' ? 'next alone' : adminToken === adminTokenNext ? 'same twice' : undefined;
  return {
    ...others,
    adminTokens: [...new Set([adminToken, adminTokenNext])].filter((token) => token !== ''),
    rotation: adminTokenNext === '' ? undefined : rotation,
    allowedOrigins: server.allowedOrigins.map((origin) => origin.toLowerCase()),
    allowedHosts: server.allowedHosts?.map((host) => host.toLowerCase()),
  };
}

/** `management`: another port than the agents', which the Service exposes. */
export function deriveManagement(
  { server, management }: ConfigDocument,
  problems: ProblemList,
): GatewayConfig['management'] | undefined {
  if (!problems.sound('management', 'server.port')) return undefined;
  if (management.port !== 0 && management.port === server.port)
    problems.add('management.port', 'must differ from server.port');
  return management;
}

/** `protocols`: http unless switched off, the others only when switched on. */
export function deriveProtocols(
  document: ConfigDocument,
  checkout: AcpSurroundings,
  problems: ProblemList,
): GatewayConfig['protocols'] | undefined {
  if (!problems.readable('protocols')) return undefined;
  checkCardKey(document, problems);
  const acp = deriveAcp(document, checkout, problems);
  checkMounts(document, problems);
  return problems.sound('protocols') && acp !== undefined ? { ...document.protocols, acp } : undefined;
}

/** The key that signs the agent card. */
function checkCardKey({ protocols }: ConfigDocument, problems: ProblemList): void {
  const path = 'protocols.a2a.signingKey';
  const pem = problems.sound(path) ? protocols.a2a.signingKey : undefined;
  const reading = pem === undefined ? undefined : readSigningKey(pem);
  if (reading?.ok === false) problems.add(path, reading.message);
}

/** Adapters that offer resources and are switched on; undefined where that cannot be told. */
export function enabledChannels(
  { protocols }: ConfigDocument,
  problems: ProblemList,
): ReadonlySet<Channel> | undefined {
  const names = ['http', 'mcp', 'a2a'] as const;
  if (!problems.sound(...names.map((name) => `protocols.${name}.enabled`))) return undefined;
  return new Set(names.filter((name) => protocols[name].enabled));
}

/** Each adapter has its paths to itself, and none of the gateway's own. */
function checkMounts({ protocols }: ConfigDocument, problems: ProblemList): void {
  const taken = new Map<string, string>();
  for (const name of ['mcp', 'a2a', 'acp'] as const) {
    const path = `protocols.${name}.mountPath`;
    if (!problems.sound(path, `protocols.${name}.enabled`)) continue;
    const { mountPath, enabled } = protocols[name];
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
export function deriveLimits({ limits }: ConfigDocument): GatewayConfig['limits'] {
  const { unpaidWork, rate } = limits;
  const { windowSeconds, ...amounts } = unpaidWork;
  return {
    ...limits,
    unpaidWork: { ...amounts, windowMs: windowSeconds * 1_000 },
    rate: rate && { perSecond: rate.perSecond, burst: rate.burst ?? 2 * rate.perSecond },
  };
}
