import type { Express, RequestHandler } from 'express';
import type { GatewayConfig } from '../config/document/config.ts';
import { isLoopbackUrl } from '../config/document/endpoints.ts';
import { countUnlessPaid, rateLimit } from '../pipeline/middleware/rate-limit.ts';
import { type ClientOf, clientNetwork } from '../server/rate-limit/client-address.ts';
import type { Guesses } from '../server/rate-limit/failed-attempts.ts';
import { createTokenBuckets } from '../server/rate-limit/token-buckets.ts';
import { type Exposure, watchBypass } from '../sidecar/bypass.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';

/**
 * Express without what agents do not need: no banner, no computed ETags, no nested queries; paths
 * are what they say.
 */
export function plainExpress(app: Express): Express {
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false);
  app.enable('strict routing');
  app.enable('case sensitive routing');
  return app;
}

/** What keeps strangers within bounds, before and beside the calls. */
export interface IngressGuards {
  /** What every call passes before a byte of its body is read. */
  readonly entrance: readonly RequestHandler[];
  /** A layer that delivers: what it delivers to those who pay is not counted. */
  readonly unlessPaid: (layer: RequestHandler) => RequestHandler;
  /** Who sends a request, for counting. */
  readonly clientOf: ClientOf;
  /** Where wrong operator tokens are counted. */
  readonly guesses: Guesses;
  /** Where wrong tokens of checkout clients are. */
  readonly checkoutGuesses: Guesses;
  /** Whether the merchant can be called past the gateway. */
  readonly bypassed: () => boolean;
  close(): void;
}

/** Wires limits and watch, and shows at `/metrics` what they met. */
export function openIngressGuards(
  config: Pick<GatewayConfig, 'backend' | 'limits' | 'server'>,
  log: Log,
  metrics: Metrics,
): IngressGuards {
  const { rate } = config.limits;
  const limited = { call: 0, operator_token: 0, acp_token: 0 };
  const clientOf = clientNetwork(config.server.trustProxy);
  const buckets = rate === undefined ? undefined : createTokenBuckets(rate);
  const count = (what: keyof typeof limited) => (): void => {
    limited[what] += 1;
  };
  const bypass = isLoopbackUrl(config.backend.origin)
    ? watchBypass({ port: portOf(config.backend.origin), onChange: exposureLog(log) })
    : undefined;
  const bypassed = (): boolean => bypass?.exposure() !== undefined;

  metrics.counter({
    name: 'acg_rate_limited_total',
    help: 'Requests answered 429: calls beyond limits.rate, and guesses of operator and ACP tokens beyond ten a minute.',
    label: 'what',
    read: () => limited,
  });
  metrics.gauge({
    name: 'acg_merchant_exposed',
    help: '1 while the merchant can be called past the gateway, without paying: make it listen on 127.0.0.1 only.',
    read: () => (bypassed() ? 1 : 0),
  });
  return {
    entrance: buckets === undefined ? [] : [rateLimit(buckets, clientOf, count('call'))],
    unlessPaid: buckets === undefined ? (layer) => layer : countUnlessPaid,
    clientOf,
    guesses: { clientOf, onLimited: count('operator_token') },
    checkoutGuesses: { clientOf, onLimited: count('acp_token') },
    bypassed,
    close: () => bypass?.close(),
  };
}

function portOf(origin: string): number {
  const { protocol, port } = new URL(origin);
  return Number(port || (protocol === 'https:' ? 443 : 80));
}

function exposureLog(log: Log) {
  return (exposure: Exposure | undefined): void => {
    if (exposure === undefined) log.info('the merchant can be called through the gateway only');
    else
      log.warn(
        exposure,
        'the merchant can be called past the gateway, without paying: make it listen on 127.0.0.1 only',
      );
  };
}
