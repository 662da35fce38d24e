/**
 * One `merchant.id` in a store is one service: what one gateway sold, another delivers from its own
 * backend.
 */

import type { GatewayConfig } from '../config/document/config.ts';
import { isLoopbackUrl } from '../config/document/endpoints.ts';
import { ConfigError } from '../problems/problem.ts';
import type { Store } from '../store/documents/store.ts';
import type { Log } from '../telemetry/log/log.ts';

/** The name of the value that says whose a store is. */
const NAME = 'service';

/**
 * Compares the service with the one that the store was first used by. A store that does not answer
 * is logged and stops no start.
 * @throws ConfigError where that is another one
 */
export async function requireService(
  { secrets, name }: Pick<Store, 'secrets' | 'name'>,
  { id, publicBaseUrl, formerBaseUrls }: GatewayConfig['merchant'],
  log: Log,
): Promise<void> {
  const known = await secrets.agree(NAME, publicBaseUrl).catch((err: unknown) => {
    log.warn({ err }, 'the store does not say which service it belongs to');
    return publicBaseUrl;
  });
  if (known === publicBaseUrl || formerBaseUrls.includes(known)) return;
  if (name === 'sqlite' && areOfOneTrial(known, publicBaseUrl)) return;
  const message =
    `is ${publicBaseUrl}, and merchant.id ${id} in this store is the service at ${known}: give each service an id of its own. ` +
    'Where this service has moved, name its earlier address in merchant.formerBaseUrls';
  throw new ConfigError([{ path: 'merchant.publicBaseUrl', message }]);
}

/** A trial on one machine, whose ports may change from start to start. */
function areOfOneTrial(url: string, publicBaseUrl: string): boolean {
  return isLoopbackUrl(url) && isLoopbackUrl(publicBaseUrl);
}

/** Whether a URL is below an address of this service, present or former. */
export function isOfService(
  { publicBaseUrl, formerBaseUrls }: Pick<GatewayConfig['merchant'], 'publicBaseUrl' | 'formerBaseUrls'>,
  url: string,
): boolean {
  return (
    [publicBaseUrl, ...formerBaseUrls].some((base) => url.startsWith(`${base}/`)) || areOfOneTrial(url, publicBaseUrl)
  );
}
