/** Asks the probes and hooks of containers as the kubelet does. */

import { request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Hook, HttpGet, Probe } from '../../src/sidecar/injection/pod.ts';

/** Where all pods of this machine are. */
const ADDRESS = '127.0.0.1';
/** What Kubernetes takes where a probe does not say. */
const USUAL = { period: 10, timeout: 1, success: 1, failure: 3 };

/** Whether the probe succeeds now. */
function succeeds(probe: Probe, signal: AbortSignal): Promise<boolean> {
  const timeout = AbortSignal.timeout((probe.timeoutSeconds ?? USUAL.timeout) * 1_000);
  const either = AbortSignal.any([signal, timeout]);
  if (probe.httpGet !== undefined)
    return httpStatus(probe.httpGet, 'kube-probe/1.36', either).then(
      (status) => status >= 200 && status < 400,
      () => false,
    );
  if (probe.tcpSocket !== undefined) return connects(Number((probe.tcpSocket as HttpGet).port), either);
  throw new Error('only httpGet and tcpSocket probes are run here');
}

/**
 * Asks a probe at its period until `signal` is aborted, and tells each change: true after
 * `successThreshold` successes in a row, false after `failureThreshold` failures.
 */
export async function watchProbe(probe: Probe, signal: AbortSignal, onChange: (well: boolean) => void): Promise<void> {
  const { periodSeconds = USUAL.period, successThreshold = USUAL.success, failureThreshold = USUAL.failure } = probe;
  let told: boolean | undefined;
  let last: boolean | undefined;
  let run = 0;
  while (!signal.aborted) {
    const next = delay(periodSeconds * 1_000, undefined, { signal }).catch(() => undefined);
    const well = await succeeds(probe, signal);
    if (signal.aborted) return;
    run = well === last ? run + 1 : 1;
    last = well;
    if (well !== told && run >= (well ? successThreshold : failureThreshold)) {
      told = well;
      onChange(well);
    }
    await next;
  }
}

/**
 * Runs a preStop hook. It has no timeout of its own; a failed one does not hold the container back.
 * @returns the status; 0 where there was no answer
 */
export async function runHook(hook: Hook, signal: AbortSignal): Promise<number> {
  if (hook.httpGet !== undefined) return httpStatus(hook.httpGet, 'kube-lifecycle/1.36', signal).catch(() => 0);
  if (hook.sleep !== undefined) {
    await delay((hook.sleep.seconds ?? 0) * 1_000, undefined, { signal }).catch(() => undefined);
    return 200;
  }
  throw new Error('only httpGet and sleep hooks are run here');
}

function httpStatus(
  { port, path = '/', httpHeaders = [] }: HttpGet,
  userAgent: string,
  signal: AbortSignal,
): Promise<number> {
  const own = httpHeaders.flatMap(({ name, value = '' }) => [name, value]);
  const headers = ['Host', `${ADDRESS}:${port}`, 'User-Agent', userAgent, ...own, 'Connection', 'close'];
  return new Promise((resolve, reject) => {
    const asked = request({ host: ADDRESS, port, path, headers, agent: false, signal }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
      response.once('error', reject);
    });
    asked.once('error', reject);
    asked.end();
  });
}

function connects(port: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: ADDRESS, port, signal });
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
