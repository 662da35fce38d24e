/** The app of the second listener, for the pod and its operators: probes, metrics, hooks. */

import { isIP } from 'node:net';
import type { Express, RequestHandler, Router } from 'express';
import { GatewayError } from '../errors.ts';
import { errorHandler, type FailureListener } from '../pipeline/middleware/error-handler.ts';
import { identify } from '../server/http/access-record.ts';
import { allowOnly, checkFraming, ownersOf, singleHeader } from '../server/http/request.ts';
import { sendJson, sendText } from '../server/http/respond.ts';
import type { PodHooks } from '../sidecar/pod-hooks.ts';
import { type Monitor, probes } from '../telemetry/health/monitor.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { noRoute, plainExpress } from './plain-express.ts';

/** How long a text of metrics is served, milliseconds: making one holds up the calls beside it. */
const METRICS_KEPT_MS = 1_000;

interface ManagementParts {
  readonly monitor: Pick<Monitor, 'readiness' | 'routing'>;
  readonly metrics: Pick<Metrics, 'text' | 'contentType'>;
  /** The work that `/drain` and `/release` start and wait for. */
  readonly hooks: PodHooks;
  /** The probes of the merchant's container, which the kubelet asks here. */
  readonly merchantProbes: Router;
  readonly onFailure: FailureListener;
}

/**
 * The app of the management listener (contract 8). It stands behind no Service, so that a flood of
 * agents can neither fail a probe nor reach a hook. It looks at no Host: the kubelet sends the
 * address of the pod.
 */
export function managementApp({ monitor, metrics, hooks, merchantProbes, onFailure }: ManagementParts): Express {
  const app = plainExpress();
  app.use(identify());
  app.use(checkFraming());
  app.use(probes(monitor));
  app.use(merchantProbes);
  app.get('/routing', async function routing(_req, res) {
    const check = await monitor.routing();
    res.setHeader('cache-control', 'no-store');
    sendJson(res, check.status === 'fail' ? 503 : 200, JSON.stringify(check));
  });
  app.all('/routing', allowOnly('GET', 'HEAD'));
  const metricsText = kept(() => metrics.text());
  app.get('/metrics', async function metricsRoute(_req, res) {
    const text = await metricsText();
    res.setHeader('cache-control', 'no-store');
    sendText(res, 200, { 'content-type': metrics.contentType }, text);
  });
  app.all('/metrics', allowOnly('GET', 'HEAD'));
  const admit = onlyHooks(hooks.key);
  mountHook(app, admit, '/drain', { status: 'drained' }, () => hooks.drain());
  mountHook(app, admit, '/release', { status: 'released' }, () => hooks.release());
  app.use(noRoute);
  app.use(errorHandler(onFailure));
  return app;
}

/** Answers once what the hook started is done, however long that takes. */
function mountHook(
  app: Express,
  admit: RequestHandler,
  path: string,
  done: { readonly status: string },
  run: () => Promise<void>,
): void {
  const body = JSON.stringify(done);
  const hook: RequestHandler = async function hook(_req, res) {
    await run();
    res.setHeader('cache-control', 'no-store');
    sendJson(res, 200, body);
  };
  // Express would run the GET handler for a HEAD, and a HEAD must not end the process.
  app.head(path, allowOnly('GET'));
  app.get(path, admit, hook);
  app.all(path, allowOnly('GET'));
}

/** Keeps a text for METRICS_KEPT_MS from the start of its making; a failure is not kept. */
function kept(make: () => Promise<string>): () => Promise<string> {
  let text: Promise<string> | undefined;
  let madeAt = 0;
  return () => {
    const now = performance.now();
    if (text !== undefined && now - madeAt < METRICS_KEPT_MS) return text;
    madeAt = now;
    const made = make();
    text = made;
    made.catch(() => {
      if (text === made) text = undefined;
    });
    return made;
  };
}

/** The kubelet sends this header with a hook (`httpHeaders`); a page can only after a preflight. */
const HOOK_HEADER = 'agent-commerce-hook';
const FETCH_METADATA = 'sec-fetch-';

const NO_HOOK = {
  message:
    'This route is for the hooks of the pod: it needs the header Agent-Commerce-Hook with the value of GATEWAY_HOOK_KEY (1 where that is not set), no Origin or Sec-Fetch-* beside it, and as Host an address or localhost.',
  headers: { 'cache-control': 'no-store' },
} as const;

/**
 * Admits requests whose hook header says `key`, and none that a browser sent for a page. A page
 * whose own name is made to point at the pod sends neither Origin nor Sec-Fetch-*, but that name as
 * Host.
 */
function onlyHooks(key = '1'): RequestHandler {
  const isKey = ownersOf([{ token: key, owner: true }]);
  return function onlyHooks(req, _res, next) {
    const { headers } = req;
    const fromPage =
      headers.origin !== undefined || Object.keys(headers).some((name) => name.startsWith(FETCH_METADATA));
    if (fromPage || !isAddress(singleHeader(req, 'host')) || isKey(singleHeader(req, HOOK_HEADER)) !== true)
      throw new GatewayError('FORBIDDEN', NO_HOOK);
    next();
  };
}

/** The kubelet names the address of the pod, a person on the node perhaps localhost. */
function isAddress(host: string | undefined): boolean {
  const name = host?.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  return name !== undefined && (name === 'localhost' || isIP(name) !== 0);
}
