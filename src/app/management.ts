import express, { type Express } from 'express';
import { GatewayError } from '../errors.ts';
import { errorHandler, type FailureListener } from '../pipeline/middleware/error-handler.ts';
import { checkFraming } from '../server/http/framing.ts';
import { identify } from '../server/http/request-id.ts';
import { sendJson } from '../server/http/respond.ts';
import { allowOnly } from '../server/http/target.ts';
import type { Monitor } from '../telemetry/health/monitor.ts';
import { probes } from '../telemetry/health/routes.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { plainExpress } from './ingress-guards.ts';

const DRAINED = JSON.stringify({ status: 'drained' });

/**
 * The management listener (contract 8): probes, metrics and the pod's hooks. Never behind a
 * Service, so that a flood of agents can neither fail a probe nor reach a hook.
 */
export function managementApp(
  monitor: Monitor,
  metrics: Metrics,
  drain: () => Promise<void>,
  onFailure: FailureListener,
): Express {
  const app = plainExpress(express());
  app.use(identify());
  app.use(checkFraming());
  app.use(probes(monitor));
  app.get('/metrics', async function metricsText(_req, res) {
    const text = await metrics.text();
    res.setHeader('content-type', metrics.contentType);
    res.setHeader('cache-control', 'no-store');
    res.end(text);
  });
  app.all('/metrics', allowOnly('GET', 'HEAD'));
  // Express would serve a HEAD with it, and whoever looks must not end the process.
  app.head('/drain', allowOnly('GET'));
  app.get('/drain', async function drainHook(_req, res) {
    await drain();
    sendJson(res, 200, DRAINED);
  });
  app.all('/drain', allowOnly('GET'));
  app.use(function noRoute() {
    throw new GatewayError('NOT_FOUND');
  });
  app.use(errorHandler(onFailure));
  return app;
}
