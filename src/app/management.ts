/** The app of the second listener, for the pod and its operators: probes, metrics, the drain. */

import type { Express, Router } from 'express';
import { errorHandler, type FailureListener } from '../pipeline/middleware/error-handler.ts';
import { checkFraming } from '../server/http/framing.ts';
import { identify } from '../server/http/request-id.ts';
import { sendJson } from '../server/http/respond.ts';
import { allowOnly } from '../server/http/target.ts';
import type { Monitor } from '../telemetry/health/monitor.ts';
import { probes } from '../telemetry/health/routes.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { noRoute, plainExpress } from './plain-express.ts';

const DRAINED = JSON.stringify({ status: 'drained' });

/**
 * The app of the management listener (contract 8). It stands behind no Service, so that a flood of
 * agents can neither fail a probe nor reach the hook. `drain`: what `/drain` starts and waits for.
 * `merchantProbes`: the probes of the merchant's container, which the kubelet asks here.
 */
export function managementApp(
  monitor: Monitor,
  metrics: Metrics,
  drain: () => Promise<void>,
  onFailure: FailureListener,
  merchantProbes: Router,
): Express {
  const app = plainExpress();
  app.use(identify());
  app.use(checkFraming());
  app.use(probes(monitor));
  app.use(merchantProbes);
  app.get('/metrics', async function metricsText(_req, res) {
    const text = await metrics.text();
    res.setHeader('content-type', metrics.contentType);
    res.setHeader('cache-control', 'no-store');
    res.end(text);
  });
  app.all('/metrics', allowOnly('GET', 'HEAD'));
  // Express would serve a HEAD with it, and a look must not end the process.
  app.head('/drain', allowOnly('GET'));
  app.get('/drain', async function drainHook(_req, res) {
    await drain();
    sendJson(res, 200, DRAINED);
  });
  app.all('/drain', allowOnly('GET'));
  app.use(noRoute);
  app.use(errorHandler(onFailure));
  return app;
}
