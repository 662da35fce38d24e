/** Lists every secret of the configuration, so that the log can mask echoes of peers. */

import type { SealingKey } from '../crypto/seal.ts';
import type { RedisSettings } from '../store/port/settings.ts';
import type { GatewayConfig } from './document/config.ts';

/** Shorter values are not masked, characters: they would hide ordinary text. */
const SHORTEST_SECRET = 8;

/**
 * Every configured value that must never appear in an answer or a log line. Nothing of it is logged
 * on purpose; the log masks it as a last resort.
 */
export function secretsOf(config: GatewayConfig): readonly string[] {
  const { server, storage, backend, protocols, x402, authorization, signing, resources } = config;
  const headers = [backend.headers, ...resources.map((resource) => resource.backend.headers)];
  const found = [
    ...server.adminTokens,
    ...headers.flatMap((named) => Object.values(named)),
    ...(storage.engine.kind === 'redis' ? redisSecrets(storage.engine) : []),
    ...keySecrets(storage.sealing ?? []),
    ...checkoutSecrets(protocols.acp),
    ...pemSecrets(protocols.a2a.signingKey),
    ...pemSecrets(authorization.ap2?.checkout.signingKey),
    ...pemSecrets(signing?.key),
    ...(x402?.rpcUrls ?? []).flatMap(urlSecrets),
    ...(x402 === undefined ? [] : [...x402.buyerTokenSecrets, ...facilitatorSecrets(x402.facilitator)]),
  ];
  return [...new Set(found)].filter((secret) => secret.length >= SHORTEST_SECRET);
}

function checkoutSecrets(acp: GatewayConfig['protocols']['acp']): readonly string[] {
  if (!acp.enabled) return [];
  const { clients, idempotency, backend } = acp;
  return [
    ...clients.flatMap(({ tokens }) => tokens),
    Buffer.from(idempotency.secret).toString(),
    ...keySecrets(idempotency.keys),
    ...Object.values(backend.headers),
  ];
}

/** Keys in each spelling that a message may use. */
function keySecrets(keys: readonly SealingKey[]): readonly string[] {
  return keys.flatMap(({ key }) => {
    const bytes = Buffer.from(key);
    return [bytes.toString('base64').replace(/=+$/, ''), bytes.toString('base64url'), bytes.toString('hex')];
  });
}

/** Line by line, because a message seldom echoes the whole file. The PEM header is no secret. */
function pemSecrets(pem: string | undefined): readonly string[] {
  return (pem?.split(/\r?\n/) ?? []).filter((line) => !line.startsWith('-----'));
}

function redisSecrets(settings: RedisSettings): readonly string[] {
  const sentinel = 'sentinel' in settings ? settings.sentinel.password : undefined;
  const passwords = [settings.password, sentinel].filter((password) => password !== undefined);
  return 'url' in settings ? [...passwords, ...urlSecrets(settings.url)] : passwords;
}

function facilitatorSecrets(facilitator: NonNullable<GatewayConfig['x402']>['facilitator']): readonly string[] {
  if (facilitator.mode === 'local') return [facilitator.privateKey, facilitator.privateKey.slice(2)];
  return [facilitator, ...facilitator.fallbacks].flatMap(({ url, auth }) => [
    ...(auth.type === 'bearer' ? [auth.token] : []),
    ...(auth.type === 'cdp' ? pemSecrets(auth.keySecret) : []),
    ...urlSecrets(url),
  ]);
}

/** Passwords, and the long parts of path and query where node providers put their keys. */
function urlSecrets(text: string): readonly string[] {
  if (!URL.canParse(text)) return [];
  const url = new URL(text);
  const parts = [url.password, decodeURIComponent(url.password), ...url.searchParams.values()];
  return [...parts, ...url.pathname.split('/').filter((part) => part.length >= 16)];
}
