/** The probes `/health` and `/ready`. */

import { Router } from 'express';
import { sendJson } from '../../server/http/respond.ts';
import { allowOnly } from '../../server/http/target.ts';
import type { Monitor } from './monitor.ts';

const ALIVE = JSON.stringify({ status: 'ok' });

/** Mounted on both listeners, before every check of Host or Origin. */
export function probes(monitor: Pick<Monitor, 'readiness'>): Router {
  const router = Router({ strict: true, caseSensitive: true });
  router.get('/health', function health(_req, res) {
    res.setHeader('cache-control', 'no-store');
    sendJson(res, 200, ALIVE);
  });
  router.get('/ready', async function ready(_req, res) {
    const readiness = await monitor.readiness();
    res.setHeader('cache-control', 'no-store');
    sendJson(res, readiness.ready ? 200 : 503, JSON.stringify(readiness));
  });
  router.all(['/health', '/ready'], allowOnly('GET', 'HEAD'));
  return router;
}
