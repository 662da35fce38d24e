/**
 * Which keys of the configuration can change while the gateway runs, and what changed between two
 * documents. The keys of each kind are in docs/configuration.md.
 */

import { isDeepStrictEqual } from 'node:util';
import { memberPath } from '../problems/problem.ts';
import { readRedisUrl } from '../store/redis/url.ts';
import type { ConfigDocument } from './document/document.ts';
import { isMapping, schemaAt } from './document/member.ts';

/** Whether a changed key takes effect at a reload, or the gateway has to be started again. */
type Change = 'reload' | 'restart';

/** Every key of the schema, or the section that it is in. */
export const KEYS: Readonly<Record<string, Change>> = {
  version: 'restart',
  // Proofs, mandates and sessions that are under way name the merchant and its address.
  merchant: 'restart',
  'server.host': 'restart',
  'server.port': 'restart',
  'server.adminToken': 'reload',
  'server.adminTokenNext': 'reload',
  'server.allowedOrigins': 'reload',
  'server.allowedHosts': 'reload',
  'server.trustProxy': 'reload',
  'server.maxHeadBytes': 'reload',
  management: 'restart',
  'backend.baseUrl': 'restart',
  'backend.allowNonLoopback': 'reload',
  'backend.headers': 'reload',
  'backend.probe': 'restart',
  // The listener is made for what it relays.
  'backend.passthrough.enabled': 'restart',
  'backend.passthrough.websocket': 'restart',
  'backend.passthrough.idleTimeoutMs': 'restart',
  'backend.passthrough.include': 'reload',
  'backend.passthrough.exclude': 'reload',
  'backend.passthrough.allow': 'reload',
  'backend.passthrough.allowHeaders': 'reload',
  'backend.passthrough.preserveHost': 'reload',
  'backend.originHeaders': 'reload',
  'storage.redis.url': 'restart',
  'storage.redis.sentinel.name': 'restart',
  'storage.redis.sentinel.nodes': 'restart',
  'storage.redis.sentinel.username': 'reload',
  'storage.redis.sentinel.password': 'reload',
  'storage.redis.cluster': 'restart',
  'storage.redis.username': 'reload',
  'storage.redis.password': 'reload',
  'storage.redis.tls': 'restart',
  'storage.redis.replicas': 'restart',
  'storage.sqlite': 'restart',
  'storage.sealing': 'reload',
  'storage.replicas': 'restart',
  'storage.eventsMaxLength': 'restart',
  'storage.receiptsMaxLength': 'restart',
  'storage.receiptsMaxAgeDays': 'restart',
  'protocols.http.enabled': 'restart',
  'protocols.mcp.enabled': 'restart',
  'protocols.mcp.mountPath': 'restart',
  'protocols.a2a.enabled': 'restart',
  'protocols.a2a.mountPath': 'restart',
  'protocols.a2a.errorProfile': 'restart',
  'protocols.a2a.description': 'reload',
  'protocols.a2a.provider': 'reload',
  'protocols.a2a.documentationUrl': 'reload',
  'protocols.a2a.iconUrl': 'reload',
  'protocols.a2a.signingKey': 'reload',
  'protocols.acp.enabled': 'restart',
  'protocols.acp.mountPath': 'restart',
  'protocols.acp.auth': 'reload',
  'protocols.acp.backend.baseUrl': 'restart',
  'protocols.acp.backend.headers': 'reload',
  'protocols.acp.backend.scopesByClient': 'reload',
  'protocols.acp.backend.operations': 'reload',
  'protocols.acp.idempotency.retentionHours': 'reload',
  // Under another secret a repeated checkout call would be a new one.
  'protocols.acp.idempotency.secret': 'restart',
  'protocols.acp.idempotency.merchant': 'reload',
  'protocols.acp.idempotency.sessionLock': 'reload',
  'protocols.acp.discovery': 'reload',
  'protocols.acp.limits': 'reload',
  'protocols.acp.sessionDays': 'reload',
  'protocols.acp.acceptLineItemQuantity': 'reload',
  'protocols.acp.strictSemantics': 'reload',
  'protocols.acp.authenticationErrors': 'reload',
  'payments.x402.network': 'restart',
  'payments.x402.asset': 'restart',
  'payments.x402.assetName': 'restart',
  'payments.x402.assetVersion': 'restart',
  'payments.x402.assetDecimals': 'restart',
  'payments.x402.currency': 'restart',
  'payments.x402.payTo': 'restart',
  'payments.x402.maxTimeoutSeconds': 'reload',
  'payments.x402.rpcUrl': 'restart',
  'payments.x402.rpcUrls': 'restart',
  'payments.x402.allowMainnet': 'restart',
  'payments.x402.localSignatureCheck': 'restart',
  'payments.x402.confirm': 'restart',
  'payments.x402.confirmations': 'restart',
  'payments.x402.buyerTokenSecrets': 'reload',
  'payments.x402.keepAnswerSeconds': 'reload',
  'payments.x402.payToExclusive': 'reload',
  'payments.x402.onStoreLoss': 'reload',
  'payments.x402.facilitator.mode': 'restart',
  'payments.x402.facilitator.url': 'restart',
  'payments.x402.facilitator.auth': 'reload',
  'payments.x402.facilitator.fallbacks': 'restart',
  'payments.x402.facilitator.privateKey': 'restart',
  'authorization.ap2.enabled': 'restart',
  // Checkouts that are out name it.
  'authorization.ap2.audience': 'restart',
  'authorization.ap2.clockSkewSeconds': 'reload',
  'authorization.ap2.maxPresentationAgeSeconds': 'reload',
  'authorization.ap2.maxEnvelopeBytes': 'reload',
  'authorization.ap2.algorithms': 'reload',
  'authorization.ap2.currencies': 'reload',
  'authorization.ap2.checkout': 'reload',
  'authorization.ap2.policy': 'reload',
  'authorization.ap2.issuers': 'reload',
  signing: 'reload',
  resources: 'reload',
  publish: 'reload',
  limits: 'reload',
};

/** Keys that need a restart but for a part of them, and how that part is left out. */
const BUT_FOR_LOGINS: Readonly<Record<string, (value: unknown) => unknown>> = {
  'storage.redis.url': withoutRedisLogin,
  'payments.x402.facilitator.fallbacks': withoutLogins,
};

/** What changed, as paths of the document; never a value. */
interface Changes {
  readonly changed: readonly string[];
  /** Of these, what a running gateway cannot take over. */
  readonly restart: readonly string[];
}

/** Compares two documents that were accepted; an absent key counts as its default. */
export function changesBetween(before: ConfigDocument, after: ConfigDocument): Changes {
  const found = Object.entries(KEYS).map(([path, change]) => {
    const steps = path.split('.');
    const [one, other] = [before, after].map((document) => valueAt(document, steps) ?? schemaAt(steps)?.default);
    const part = BUT_FOR_LOGINS[path];
    const stays = part !== undefined && isDeepStrictEqual(part(one), part(other));
    const changed = differing(path, one, other);
    return { changed, restart: change === 'restart' && !stays ? changed : [] };
  });
  return {
    changed: found.flatMap(({ changed }) => changed),
    restart: found.flatMap(({ restart }) => restart),
  };
}

/** The paths at which two values differ. Lists are compared as a whole. */
function differing(path: string, one: unknown, other: unknown): readonly string[] {
  if (isDeepStrictEqual(one, other)) return [];
  if (!isMapping(one) || !isMapping(other)) return [path];
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].flatMap((name) =>
    differing(memberPath(path, name), one[name], other[name]),
  );
}

function valueAt(value: unknown, [step, ...rest]: readonly string[]): unknown {
  if (step === undefined) return value;
  return isMapping(value) ? valueAt(value[step], rest) : undefined;
}

function withoutRedisLogin(url: unknown): unknown {
  const reading = typeof url === 'string' ? readRedisUrl(url) : undefined;
  if (reading?.ok !== true) return url;
  const { at, tls, db = 0 } = reading.url;
  return { at, tls, db };
}

function withoutLogins(fallbacks: unknown): unknown {
  return Array.isArray(fallbacks) ? fallbacks.map((one: unknown) => (isMapping(one) ? one['url'] : one)) : fallbacks;
}
