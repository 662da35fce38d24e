/**
 * Opens a gateway of several processes: the primary forks the workers, owns the management listener
 * and the configuration, and gives one answer of all workers. It serves no agents.
 */

import { openAppProbes, soldTargets } from '../app/app-probe-guard.ts';
import { drainLengthOf } from '../app/drain-length.ts';
import { managementApp } from '../app/management.ts';
import { openHooks, type PodGateway } from '../app/open-pod-hooks.ts';
import { checkShares } from '../config/share-of.ts';
import { createListener } from '../server/listener/listen.ts';
import { appProbes } from '../sidecar/app-probes.ts';
import { failureLog, type Log, refusalLog } from '../telemetry/log/log.ts';
import { createOwnMetrics } from '../telemetry/metrics/metrics.ts';
import { forkWorker } from '../workers/cluster.ts';
import type { FenceOrder, NumberedDocument } from '../workers/commands.ts';
import { createMetricsMerger, oneAtATime } from '../workers/merge-metrics.ts';
import { mergeReadiness, mergeRouting } from '../workers/merge-readiness.ts';
import { createPool, type Pool, type PoolNote } from '../workers/pool.ts';
import { listenAt, type Opened } from './closing.ts';
import { collectStart } from './collect-start.ts';
import { checkedDrain } from './process-settings.ts';
import { graceOf, type Serving, type Start, startFacts, watchConfig } from './serving.ts';

/** `start.processes` is more than 1. Notes the closers in `opened`. */
export async function openWorkers(start: Start, log: Log, opened: Opened): Promise<Serving> {
  const { loaded, settings, processes } = start;
  let { config } = loaded;
  let numbered: NumberedDocument = { number: 1, document: loaded.document, fromFile: loaded.fromFile };
  let isSold = soldTargets(config);
  let port: number | undefined;
  let fence: FenceOrder | undefined;
  const pool = createPool({
    count: processes,
    fork: () => forkWorker(processes),
    order: () => ({ config: numbered, processes, port, fence }),
    note: (note) => notePool(log, note),
  });
  opened.push(() => pool.end());
  port = await pool.start();

  const lengthOfDrain = () => drainLengthOf(config, settings.drainSeconds);
  const gateway = podOf(pool, (order) => {
    fence = order;
  });
  const hooks = openHooks({
    ...{ config, gateway, log, ...graceOf(settings, lengthOfDrain()) },
    // Each worker stops and interrupts what it has itself.
    drainSteps: () => ({ ...lengthOfDrain(), stopListening: () => undefined }),
    listenAgain: () => pool.all('openAgain', null),
  });
  const metrics = createOwnMetrics();
  showPool(metrics, pool);
  const merger = createMetricsMerger();
  const management = createListener({
    app: managementApp({
      monitor: {
        readiness: async () => mergeReadiness([...(await pool.serving('readiness', null)).values()]),
        routing: async () => mergeRouting([...(await pool.serving('routing', null)).values()]),
      },
      metrics: {
        contentType: metrics.contentType,
        text: oneAtATime(async () => merger.merge(await pool.serving('metrics', null), await metrics.text())),
      },
      hooks: { ...hooks, key: settings.hookKey },
      merchantProbes: appProbes(start.appProbes, (target) => isSold(target)),
      onFailure: failureLog(log),
    }),
    onRefused: refusalLog(log),
  });
  opened.push(
    () => management.destroy(),
    () => hooks.stop(),
  );
  const managementAt = await listenAt(management, 'management', config.management);
  const facts = { agents: port, management: managementAt.port, ...startFacts(config, settings) };
  log.info({ ...facts, store: config.storage.engine.kind, workers: processes }, 'listening');
  watchConfig(start, log, opened, {
    metrics,
    check(next) {
      checkedDrain(next, settings);
      openAppProbes(process.env, next);
      checkShares(next, processes);
    },
    async use({ config: next, document, fromFile }) {
      const following = { number: numbered.number + 1, document, fromFile };
      try {
        await pool.all('prepare', following);
      } catch (error) {
        await pool.all('discard', null);
        throw error;
      }
      // A worker that begins from here on begins with it.
      numbered = following;
      config = next;
      isSold = soldTargets(next);
      await pool.all('use', following);
    },
  });
  collectStart();
  return {
    drain: () => hooks.drain(),
    stop: () => hooks.stop(),
    failed: Promise.race([hooks.failed, pool.failed]),
    force: () => pool.kill(),
  };
}

/** All workers as the hooks of the pod see one gateway. */
function podOf(pool: Pool, onFence: (order: FenceOrder | undefined) => void): PodGateway {
  let draining = false;
  const order = (name: FenceOrder) => async (): Promise<void> => {
    onFence(name === 'lower' ? undefined : name);
    await pool.all('fence', name);
  };
  return {
    lifecycle: {
      draining: () => draining,
      async drain({ propagationMs, finishMs }) {
        draining = true;
        pool.hold();
        await pool.all('drain', { propagationMs, finishMs });
      },
      reopen() {
        draining = false;
        pool.refill();
      },
    },
    fence: { raise: order('raise'), release: order('release'), lower: order('lower') },
    exchanges: {
      async running() {
        const all = await pool.all('running', null);
        return {
          paid: all.reduce((sum, { paid }) => sum + paid, 0),
          free: all.reduce((sum, { free }) => sum + free, 0),
        };
      },
      // Each worker does before it listens again.
      resume: () => undefined,
      async tryBackend() {
        await pool.all('tryBackend', null);
      },
    },
  };
}

function notePool(log: Log, note: PoolNote): void {
  const { pid } = note;
  if (note.kind === 'ended') log.error({ pid, ...note.end }, 'a worker ended');
  else if (note.kind === 'replaced') log.warn({ pid }, 'another worker serves in its place');
  else if (note.kind === 'not replaced') log.error({ pid, err: note.error }, 'a worker could not start');
  else log.error({ pid }, 'a worker does not answer and is ended');
}

function showPool(metrics: Pick<ReturnType<typeof createOwnMetrics>, 'gauge' | 'counter'>, pool: Pool): void {
  metrics.gauge({
    name: 'acg_workers',
    help: 'Workers that serve now; server.workers is how many there should be.',
    read: () => pool.facts().serving,
  });
  metrics.counter({
    name: 'acg_workers_ended_total',
    help: 'Workers that ended although nothing told them to; another one took the place of each. The log says how.',
    read: () => pool.facts().ended,
  });
}
