/** The preStop hooks of a pod, which the kubelet asks the gateway (contract 3, shutdown). */

import type { Lifecycle } from './lifecycle.ts';

/** How long `/release` waits for `/drain`, milliseconds: both start together, in either order. */
const DRAIN_ARRIVES_MS = 300;

export interface PodHooks {
  /** The pod, or the gateway alone, ends: resolves when no call runs any more. */
  drain(): Promise<void>;
  /** The backend's container ends, with its pod or alone: resolves when it may. */
  release(): Promise<void>;
}

interface PodHookParts {
  readonly lifecycle: Pick<Lifecycle, 'draining'>;
  /** Starts the drain, once, and resolves at its end. */
  readonly drain: () => Promise<void>;
}

export function createPodHooks({ lifecycle, drain }: PodHookParts): PodHooks {
  return {
    drain,
    async release() {
      if (!lifecycle.draining()) await new Promise((resolve) => setTimeout(resolve, DRAIN_ARRIVES_MS));
      if (lifecycle.draining()) await drain();
    },
  };
}
