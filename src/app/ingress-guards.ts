/** Opens what bounds callers at the entrance: rate limits and counts of wrong tokens. */

import type { RequestHandler } from 'express';
import type { GatewayConfig } from '../config/document/config.ts';
import { isLoopbackUrl } from '../config/document/endpoints.ts';
import { countUnlessPaid, rateLimit } from '../pipeline/middleware/admit.ts';
import { type ClientOf, clientNetwork } from '../server/limits/client-address.ts';
import { countFailedAttempts, createTokenBuckets, type Guesses } from '../server/limits/rates.ts';
import { type Exposure, watchExposure } from '../sidecar/exposure.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';

/** Limits before and beside the calls, and the watch over the exposed backend. */
export interface IngressGuards {
  /** Handlers that every call passes before a byte of its body is read. */
  readonly entrance: readonly RequestHandler[];
  /** Wraps the middleware that delivers, so that delivered paid calls are not counted. */
  readonly unlessPaid: (deliver: RequestHandler) => RequestHandler;
  /** Names the client that a request is counted for. */
  readonly clientOf: ClientOf;
  /** Counts wrong operator tokens. */
  readonly guesses: Guesses;
  /** Counts wrong tokens of checkout clients. */
  readonly checkoutGuesses: Guesses;
  /** Whether the backend can be called past the gateway. */
  readonly exposed: () => boolean;
}

/** Without a rate no caller is limited; the buckets are not asked then. */
const UNLIMITED = { perSecond: Number.POSITIVE_INFINITY, burst: Number.POSITIVE_INFINITY };

/**
 * Opens limits and watch, and shows at `/metrics` what they refuse and find. `inUse`: the
 * configuration in use. A changed limit applies to earlier counts too.
 */
export function openIngressCounts(
  inUse: { readonly config: Pick<GatewayConfig, 'backend' | 'limits' | 'server'> },
  log: Log,
  metrics: Metrics,
) {
  const limited = { call: 0, operator_token: 0, acp_token: 0 };
  const buckets = createTokenBuckets(() => inUse.config.limits.rate ?? UNLIMITED);
  const wrongTries = { operators: countFailedAttempts(), checkouts: countFailedAttempts() };
  const count = (what: keyof typeof limited) => (): void => {
    limited[what] += 1;
  };
  const { origin } = inUse.config.backend;
  const watch = isLoopbackUrl(origin) ? watchExposure({ port: portOf(origin), onChange: exposureLog(log) }) : undefined;
  const exposed = (): boolean => watch?.exposure() !== undefined;

  metrics.counter({
    name: 'acg_rate_limited_total',
    help: 'Requests answered 429: calls beyond limits.rate, and guesses of operator and ACP tokens beyond ten a minute.',
    label: 'what',
    read: () => limited,
  });
  metrics.gauge({
    name: 'acg_merchant_exposed',
    help: '1 while the backend can be called past the gateway, without paying: make it listen on 127.0.0.1 only.',
    read: () => (exposed() ? 1 : 0),
  });
  return {
    /** The guards as a configuration wants them. */
    guards({ limits: { rate }, server }: Pick<GatewayConfig, 'limits' | 'server'>): IngressGuards {
      const clientOf = clientNetwork(server.trustProxy);
      return {
        entrance: rate === undefined ? [] : [rateLimit({ ...buckets, rate }, clientOf, count('call'))],
        unlessPaid: rate === undefined ? (deliver) => deliver : countUnlessPaid,
        clientOf,
        guesses: { clientOf, wrongTries: wrongTries.operators, onLimited: count('operator_token') },
        checkoutGuesses: { clientOf, wrongTries: wrongTries.checkouts, onLimited: count('acp_token') },
        exposed,
      };
    },
    exposed,
    close: () => watch?.close(),
  };
}

function portOf(origin: string): number {
  const { protocol, port } = new URL(origin);
  return Number(port || (protocol === 'https:' ? 443 : 80));
}

function exposureLog(log: Log) {
  return (exposure: Exposure | undefined): void => {
    if (exposure === undefined) log.info('the backend can be called through the gateway only');
    else
      log.warn(
        exposure,
        'the backend can be called past the gateway, without paying: make it listen on 127.0.0.1 only',
      );
  };
}
