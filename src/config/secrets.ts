import type { SealingKey } from '../crypto/seal.ts';
import type { RedisSettings } from '../store/port/settings.ts';
import type { GatewayConfig } from './document/config.ts';

/** Shorter than this a value is no secret worth its false alarms, characters. */
const SHORTEST_SECRET = 8;

/**
 * Every configured value that must not come out anywhere: what a peer's error message may echo.
 * Nothing of it is ever logged on purpose; the log uses the list as a last net.
 */
export function secretsOf(config: GatewayConfig): readonly string[] {
  const { server, storage, backend, protocols, x402, authorization, resources } = config;
  const headers = [backend.headers, ...resources.map((resource) => resource.backend.headers)];
  const found = [
    ...server.adminTokens,
    ...headers.flatMap((named) => Object.values(named)),
    ...(storage.engine.kind === 'redis' ? redisSecrets(storage.engine) : []),
    ...keySecrets(storage.sealing ?? []),
    ...checkoutSecrets(protocols.acp),
    ...pemSecrets(protocols.a2a.signingKey),
    ...pemSecrets(authorization.ap2?.checkout.signingKey),
    ...(x402?.rpcUrl === undefined ? [] : urlSecrets(x402.rpcUrl)),
    ...(x402 === undefined ? [] : [...x402.buyerTokenSecrets, ...facilitatorSecrets(x402.facilitator)]),
  ];
  return [...new Set(found)].filter((secret) => secret.length >= SHORTEST_SECRET);
}

/** Tokens, the secret, what the merchant is told, and the keys. */
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

/** Keys in each spelling that a message may have them in. */
function keySecrets(keys: readonly SealingKey[]): readonly string[] {
  return keys.flatMap(({ key }) => {
    const bytes = Buffer.from(key);
    return [bytes.toString('base64').replace(/=+$/, ''), bytes.toString('base64url'), bytes.toString('hex')];
  });
}

/** Line by line: what is echoed of a key is seldom the whole file. Its armour is no secret. */
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
    ...urlSecrets(url),
  ]);
}

/** Passwords, and the long parts of path and query in which node providers put their keys. */
function urlSecrets(text: string): readonly string[] {
  if (!URL.canParse(text)) return [];
  const url = new URL(text);
  const parts = [url.password, decodeURIComponent(url.password), ...url.searchParams.values()];
  return [...parts, ...url.pathname.split('/').filter((part) => part.length >= 16)];
}
