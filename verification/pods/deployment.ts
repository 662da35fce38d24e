/** A Deployment of an emulated pod behind its Service: replicas, and their rolling restart. */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { type RunningPod, runPod } from './kubelet.ts';
import { type NodeParts, place } from './node.ts';

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

interface DeploymentParts {
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

/** A port of this machine that leads to the endpoints in turn. */
export interface Service {
  readonly url: string;
  /** New connections may go there. */
  add(port: number): void;
  /** No new connection goes there; open ones stay. */
  remove(port: number): void;
  endpoints(): readonly number[];
  stop(): Promise<void>;
}

export async function startService(): Promise<Service> {
  const endpoints: number[] = [];
  const open = new Set<Socket>();
  let turn = 0;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const port = endpoints[turn % endpoints.length];
    turn += 1;
    if (port === undefined) {
      client.resetAndDestroy();
      return;
    }
    const pod = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    client.setNoDelay(true);
    for (const [one, other] of [
      [client, pod],
      [pod, client],
    ] as const) {
      open.add(one);
      one.once('close', () => open.delete(one));
      one.once('error', () => other.resetAndDestroy());
      one.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    add(port) {
      if (!endpoints.includes(port)) endpoints.push(port);
    },
    remove(port) {
      const at = endpoints.indexOf(port);
      if (at >= 0) endpoints.splice(at, 1);
    },
    endpoints: () => endpoints,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
