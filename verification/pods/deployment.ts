/** A Deployment of an emulated pod behind its Service: replicas, and their rolling restart. */

import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { type RunningPod, runPod } from './kubelet.ts';
import { type NodeParts, place } from './node.ts';
import type { Service } from './service.ts';

/** How long a pod may take to become ready, milliseconds. */
const READY_MS = 60_000;

export interface Deployment {
  /** The pods that are meant to run now. */
  readonly pods: readonly RunningPod[];
  /** Every pod that there was. */
  readonly all: readonly RunningPod[];
  /** Surge 1, unavailable 0: resolves when the last of the old pods has ended. */
  rollingRestart(): Promise<void>;
  stop(): Promise<void>;
}

export interface DeploymentParts {
  readonly template: Pod;
  readonly replicas: number;
  readonly node: NodeParts;
  readonly service: Service;
  /** The port of the pod that the Service leads to. */
  readonly targetPort: number;
  /** How long after a pod is no endpoint any more connections still come, milliseconds. */
  readonly removedAfterMs: number;
}

/** Starts the replicas; resolves when all are ready. */
export async function startDeployment(parts: DeploymentParts): Promise<Deployment> {
  const { template, replicas, node, service, targetPort, removedAfterMs } = parts;
  const all: RunningPod[] = [];
  let pods: RunningPod[] = [];
  let placed = 0;
  const start = async (): Promise<RunningPod> => {
    placed += 1;
    const pod = runPod(await place(`pod-${placed}`, template, node));
    all.push(pod);
    const port = pod.placed.port(targetPort);
    pod.onReady((ready) => {
      if (ready) service.add(port);
      else
        setTimeout(() => {
          if (!pod.ready()) service.remove(port);
        }, removedAfterMs);
    });
    await pod.untilReady(READY_MS);
    return pod;
  };
  const stop = async (): Promise<void> => {
    await Promise.all(all.map((pod) => pod.delete()));
  };
  try {
    pods = await Promise.all(Array.from({ length: replicas }, start));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    get pods() {
      return pods;
    },
    all,
    async rollingRestart() {
      const ending: Promise<unknown>[] = [];
      for (const old of pods) {
        const fresh = await start();
        pods = [...pods.filter((pod) => pod !== old), fresh];
        ending.push(old.delete());
      }
      await Promise.all(ending);
    },
    stop,
  };
}
