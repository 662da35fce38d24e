import { longestTimeoutMs } from '../../checkouts/settings.ts';
import type { GatewayConfig } from '../document/config.ts';
import { isLoopbackUrl } from '../document/endpoints.ts';
import { STRONG_TOKEN_LENGTH } from '../document/secret-uses.ts';
import { OLD_SEALING_KEYS, SEALING_KEYS } from './sealing.ts';

/**
 * Longest wait for the merchant that the usual shutdown outlasts, milliseconds: of its 30 s, 5 are
 * for writing down what came.
 */
const USUAL_DRAIN_MS = 25_000;

/**
 * Short tokens, which only a shop on this machine alone may have, card data in clear, bounds and
 * times that others cut short.
 */
export function checkoutWarnings({ merchant, limits, protocols: { acp } }: GatewayConfig): readonly string[] {
  if (!acp.enabled) return [];
  const short = acp.clients.some(({ tokens }) => tokens.some(({ length }) => length < STRONG_TOKEN_LENGTH));
  const longest = longestTimeoutMs(acp.backend);
  const inClear = merchant.publicBaseUrl.startsWith('http:') && !isLoopbackUrl(merchant.publicBaseUrl);
  return [
    ...(inClear
      ? ['protocols.acp: merchant.publicBaseUrl is not https; tokens and payment data would travel in clear']
      : []),
    ...(acp.maxInFlight > limits.maxInFlight
      ? [
          'protocols.acp.limits.maxInFlight: more than limits.maxInFlight admits of all calls together; it bounds nothing, lower it',
        ]
      : []),
    ...(short
      ? [`protocols.acp.auth: a token is shorter than ${STRONG_TOKEN_LENGTH} characters; use a long random one`]
      : []),
    ...(acp.oldKeys
      ? [
          `${OLD_SEALING_KEYS}: moved to ${SEALING_KEYS}, where they seal what is stored of payments as well; deprecated, and read until the next major release`,
        ]
      : []),
    ...(longest > USUAL_DRAIN_MS
      ? [
          `protocols.acp.backend.operations: a call may take ${longest / 1000} s and a shutdown 5 s longer; on Kubernetes raise terminationGracePeriodSeconds`,
        ]
      : []),
  ];
}
