/** Opens the hooks of the pod over a gateway and the listener of its agents; how it drains. */

import { longestTimeoutMs } from '../checkouts/settings.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import type { Listener } from '../server/listener/listen.ts';
import { type BackendPreStop, runBackendPreStop } from '../sidecar/backend-pre-stop.ts';
import { type DrainLength, type DrainSteps, drainLength } from '../sidecar/lifecycle.ts';
import {
  type ConnectionEnd,
  type HandshakeNote,
  type OpenedPodHooks,
  openPodHooks,
  tryConnection,
} from '../sidecar/pod-hooks.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { Gateway } from './gateway.ts';

/** Log lines of the handshake between the containers of the pod. */
const NOTES: Readonly<Record<HandshakeNote, string>> = {
  draining: 'draining',
  drained: 'drained',
  'open again': 'open again: no signal came after the drain',
  fenced: 'the backend restarts: calls that need it wait',
  'backend released': 'the backend may end: nothing needs it',
  'backend replaced': 'the backend is there again',
  'backend not replaced in time': 'the backend did not come back in its time: calls wait for it no more',
};

interface HookParts {
  readonly config: Pick<GatewayConfig, 'backend'>;
  readonly gateway: Pick<Gateway, 'lifecycle' | 'fence' | 'exchanges'>;
  /** Listens where the listener of agents listened before. */
  readonly listenAgain: () => Promise<unknown>;
  /** How the process drains; asked at each drain. */
  readonly drainSteps: () => DrainSteps;
  readonly backendPreStop: BackendPreStop | undefined;
  /** How long the backend's container may take to end, and its pod as a whole, milliseconds. */
  readonly merchantGraceMs: number;
  readonly podGraceMs: number;
  /** How long after a drain began the pod ends at the latest; undefined: in no pod. */
  readonly endsWithinMs?: number | undefined;
  readonly log: Log;
  /** How long a drained process waits for its signal; 30 s unless given. */
  readonly signalComesMs?: number;
}

/** Opens the hooks of the pod; each drain of `acg serve` goes through them, with the same steps. */
export function openHooks(parts: HookParts): OpenedPodHooks {
  const { gateway, drainSteps, log, merchantGraceMs, podGraceMs, backendPreStop, signalComesMs } = parts;
  const { lifecycle, fence, exchanges } = gateway;
  return openPodHooks({
    ...{ lifecycle, fence, merchantGraceMs, podGraceMs, endsWithinMs: parts.endsWithinMs },
    ...(signalComesMs === undefined ? {} : { signalComesMs }),
    drainSteps,
    running: () => exchanges.running(),
    look: lookAt(parts.config.backend.origin),
    backendIsBack: () => exchanges.tryBackend(),
    async preStop() {
      if (backendPreStop === undefined) return;
      await runBackendPreStop(backendPreStop, merchantGraceMs).catch((err: unknown) =>
        log.warn({ err }, "the backend's own preStop hook failed"),
      );
    },
    async listenAgain() {
      exchanges.resume();
      await parts.listenAgain();
    },
    note: (note) => log.info(NOTES[note]),
  });
}

/** How a process drains. */
export function stepsOfDrain(
  length: DrainLength,
  { exchanges }: Pick<Gateway, 'exchanges'>,
  agents: Pick<Listener, 'stop' | 'disconnect'>,
  log: Pick<Log, 'warn'>,
): DrainSteps {
  return {
    ...length,
    stopListening: () => agents.stop(),
    interrupt() {
      log.warn(exchanges.running(), 'calls did not end in time: what they wait for is ended');
      void exchanges.interrupt();
    },
    disconnect: () => agents.disconnect(),
  };
}

function lookAt(origin: string): () => Promise<ConnectionEnd> {
  const { hostname, port, protocol } = new URL(origin);
  const host = hostname.replace(/^\[|\]$/g, '');
  return () => tryConnection(host, Number(port || (protocol === 'https:' ? 443 : 80)));
}

/** `propagationSeconds`: how long new calls are served after the drain began. */
export function drainLengthOf(
  { resources, protocols: { acp } }: Pick<GatewayConfig, 'resources' | 'protocols'>,
  propagationSeconds: number,
): DrainLength {
  const checkouts = acp.enabled ? longestTimeoutMs(acp.backend) : 0;
  return drainLength(propagationSeconds, Math.max(checkouts, ...resources.map(({ backend }) => backend.timeoutMs)));
}
